import type { IncomingMessage } from 'node:http'
import Router from '@koa/router'
import type { Context } from 'koa'
import { AppError } from '../domain/errors.ts'
import { WATCH_LINE_LENGTH_MAX, type WatchListFormat } from '../domain/watch-list.ts'
import type { LookAtParcels } from '../flow/look-at-parcels.ts'
import type { WatchListReport, WatchListRequest } from '../flow/watch-list.ts'
import type { Authorize } from './authorize.ts'
import { presentJson, type WithParams } from './present.ts'
import { readLines } from './read-lines.ts'

export interface ParcelListsRouteOptions {
  readonly lookAtParcels: LookAtParcels
  readonly watchList: (request: WatchListRequest) => Promise<WatchListReport>
  readonly authorize: Authorize
}

const FORMATS: Readonly<Record<string, WatchListFormat>> = {
  'application/x-ndjson': 'ndjson',
  'application/ndjson': 'ndjson',
  'text/csv': 'csv',
}
/** What 100,000 lines need, several times over. */
const BODY_BYTES_MAX = 64 * 1024 * 1024

/** Parcels as operators see them, many or one, and lists of what to watch (scope `admin`). */
export function parcelListsRoutes({ lookAtParcels, watchList, authorize }: ParcelListsRouteOptions): Router {
  const router = new Router({ strict: true, sensitive: true })
  router.get('/relay/parcels', async (ctx) => await list(ctx))
  router.post('/relay/parcels/watch', async (ctx) => {
    await authorize(ctx, 'admin')
    presentJson(ctx, 200, await watchAll(ctx))
  })
  router.get('/relay/parcels/:identifier', async (ctx: WithParams) => {
    await authorize(ctx, 'admin')
    presentJson(ctx, 200, await lookAtParcels.inspect(ctx.params.identifier ?? ''))
  })
  return router

  async function list(ctx: Context): Promise<void> {
    await authorize(ctx, 'admin')
    const { query, status, stopped, cursor, limit } = ctx.query
    presentJson(ctx, 200, await lookAtParcels.list({ query, status, stopped, cursor, limit }))
  }

  async function watchAll(ctx: Context): Promise<WatchListReport> {
    try {
      const format = FORMATS[(ctx.get('Content-Type').split(';')[0] ?? '').trim().toLowerCase()]
      if (format === undefined) throw new AppError('bad_request', 'Content-Type must be application/x-ndjson or text/csv.')
      return await watchList({ format, atomic: isAtomic(ctx.query.atomic), lines: linesOf(ctx.req) })
    } catch (error) {
      // What is left of the list is thrown away, so that its sender gets to see the refusal instead of a broken pipe.
      ctx.req.resume()
      if (!ctx.req.complete) ctx.set('Connection', 'close')
      throw error
    }
  }
}

function linesOf(req: IncomingMessage): AsyncIterable<string> {
  return readLines(req.iterator({ destroyOnReturn: false }), { bytesMax: BODY_BYTES_MAX, lineLengthMax: WATCH_LINE_LENGTH_MAX })
}

function isAtomic(value: unknown): boolean {
  if (value === undefined || value === 'false') return false
  if (value === 'true') return true
  throw new AppError('bad_request', 'atomic: true or false')
}
