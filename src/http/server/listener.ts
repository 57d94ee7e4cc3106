import type { RequestListener } from 'node:http'
import Koa from 'koa'
import type { Log } from '../../flow/ports.ts'
import { presentProblems } from './errors.ts'
import { guardRequests } from './guard.ts'

export interface AppOptions {
  readonly log: Log
  /** Whether refused requests are counted and logged elsewhere. By default they are not. */
  readonly areRefusalsCounted?: boolean
}

/** Makes a listener with the parts that both have in common: the guard before the routes, and problem answers for errors. */
export function createListener({ log, areRefusalsCounted = false }: AppOptions, mount: (app: Koa) => void): RequestListener {
  const app = new Koa()
  // Koa emits this event only for connections that broke during an answer. Without a handler it would print them.
  app.on('error', (err: unknown) => log.debug({ err }, 'a connection broke during an answer'))
  app.use(presentProblems(log, { areCounted: areRefusalsCounted }))
  app.use(guardRequests())
  mount(app)
  const handle = app.callback()
  return (req, res) => void handle(req, res)
}
