import type { RequestListener } from 'node:http'
import Koa from 'koa'
import type { Log } from '../../flow/ports.ts'
import { presentProblems } from './errors.ts'
import { guardRequests } from './guard.ts'

export interface AppOptions {
  readonly log: Log
}

/** The frame of both listeners: guard, routes, and problems for all that goes wrong. */
export function createListener({ log }: AppOptions, mount: (app: Koa) => void): RequestListener {
  const app = new Koa()
  // What reaches this is a connection that broke while it was answered; koa alone would print it.
  app.on('error', (err: unknown) => log.debug({ err }, 'a connection broke while it was answered'))
  app.use(presentProblems(log))
  app.use(guardRequests())
  mount(app)
  const handle = app.callback()
  return (req, res) => void handle(req, res)
}
