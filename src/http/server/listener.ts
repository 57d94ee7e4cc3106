import type { RequestListener } from 'node:http'
import Koa from 'koa'
import type { Log } from '../../flow/ports.ts'
import { presentProblems } from './errors.ts'
import { guardRequests } from './guard.ts'

export interface AppOptions {
  readonly log: Log
  /** Whether the routes count refused requests and log the counts. Then a 503 gets no warning. Default: false. */
  readonly areRefusalsCounted?: boolean
}

/** Makes a listener. `mount` adds its routes. Both listeners have the guard before the routes, and answer errors with problem documents. */
export function createListener({ log, areRefusalsCounted = false }: AppOptions, mount: (app: Koa) => void): RequestListener {
  const app = new Koa()
  // Koa emits this event only if a connection breaks during an answer. Without a handler Koa prints the error.
  app.on('error', (err: unknown) => log.debug({ err }, 'a connection broke during an answer'))
  app.use(presentProblems(log, { areCounted: areRefusalsCounted }))
  app.use(guardRequests())
  mount(app)
  const handle = app.callback()
  return (req, res) => void handle(req, res)
}
