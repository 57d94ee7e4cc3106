import type { IncomingMessage } from 'node:http'
import type Router from '@koa/router'
import type { Context } from 'koa'
import { WATCH_LINE_LENGTH_MAX, type WatchListFormat } from '../../domain/admin/watch-list.ts'
import { AppError } from '../../domain/errors.ts'
import type { WatchListReport, WatchListRequest } from '../../flow/admin/import-watches.ts'
import { type ParcelQueries, readCursor, readPrefix, STOPPED_REASONS } from '../../flow/admin/parcel-queries.ts'
import { createApiRoutes } from '../server/api-routes.ts'
import type { Authorize } from '../server/authorize.ts'
import { presentJson } from '../server/present.ts'
import { flag, NO_QUERY, oneOf, page, query, read, text } from '../server/query.ts'
import { readLines } from '../server/read-lines.ts'
import { presentInspected, presentListed } from './present-parcel.ts'

export interface ParcelListsRouteOptions {
  readonly lookAtParcels: ParcelQueries
  readonly watchList: (request: WatchListRequest) => Promise<WatchListReport>
  readonly authorize: Authorize
}

const FORMATS: Readonly<Record<string, WatchListFormat>> = {
  'application/x-ndjson': 'ndjson',
  'application/ndjson': 'ndjson',
  'text/csv': 'csv',
}
const LIST_QUERY = query({
  ...page,
  cursor: read(readCursor, 'must be the "next" of the previous page'),
  query: read(readPrefix, 'must be the first letters and digits of an identifier'),
  status: text,
  stopped: oneOf(STOPPED_REASONS),
})
/** Several times what 100,000 lines need. */
const BODY_BYTES_MAX = 64 * 1024 * 1024

/** Lists parcels, shows one, and imports lists to watch (scope `admin`). */
export function parcelListsRoutes({ lookAtParcels, watchList, authorize }: ParcelListsRouteOptions): Router {
  const routes = createApiRoutes(authorize)
  routes.add('get', '/relay/parcels', {
    scope: 'admin',
    query: LIST_QUERY,
    answer: async (ctx, call) => {
      const { parcels, next } = await lookAtParcels.list(call.query)
      presentJson(ctx, 200, { parcels: parcels.map(presentListed), next })
    },
  })
  routes.add('post', '/relay/parcels/watch', {
    scope: 'admin',
    query: query({ atomic: flag, column: text }),
    answer: async (ctx, call) => presentJson(ctx, 200, await watchAll(ctx, call.query)),
  })
  routes.add('get', '/relay/parcels/:identifier', {
    scope: 'admin',
    query: NO_QUERY,
    answer: async (ctx, { param }) => presentJson(ctx, 200, presentInspected(await lookAtParcels.inspect(param('identifier')))),
  })
  return routes.router

  async function watchAll(ctx: Context, { atomic, column }: Pick<WatchListRequest, 'atomic' | 'column'>): Promise<WatchListReport> {
    try {
      const format = FORMATS[(ctx.get('Content-Type').split(';')[0] ?? '').trim().toLowerCase()]
      if (format === undefined) throw new AppError('bad_request', 'Content-Type must be application/x-ndjson or text/csv.')
      return await watchList({ format, column, atomic, lines: linesOf(ctx.req) })
    } catch (error) {
      // The rest of the list is read and discarded, so that its sender sees the refusal instead of a broken pipe.
      ctx.req.resume()
      if (!ctx.req.complete) ctx.set('Connection', 'close')
      throw error
    }
  }
}

function linesOf(req: IncomingMessage): AsyncIterable<string> {
  return readLines(req.iterator({ destroyOnReturn: false }), { bytesMax: BODY_BYTES_MAX, lineLengthMax: WATCH_LINE_LENGTH_MAX })
}
