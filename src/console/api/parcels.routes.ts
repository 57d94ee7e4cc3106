import type { IncomingMessage } from 'node:http'
import type { Context } from 'koa'
import { z } from 'zod'
import { WATCH_LINE_LENGTH_MAX, type WatchListFormat } from '../../core/domain/admin/parcel-list.ts'
import { AppError } from '../../core/domain/errors.ts'
import { readCursor, readPrefix, STOPPED_REASONS } from '../../core/flow/admin/parcels/parcel-queries.ts'
import { type AnswerOf, IDENTIFIER, identifier, location, named, wholeNumber } from '../../core/http/server/answer-schemas.ts'
import { flag, oneOf, page, query, read, text } from '../../core/http/server/query.ts'
import { callRoute, listRoute, queryRoute } from '../../core/http/server/route-shapes.ts'
import { readLines } from '../../core/http/server/text-body.ts'
import { listedParcelSchema, parcelSchema, presentInspected, presentListed } from './parcel-answers.ts'

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
  unknown: flag.describe('`true`: only parcels of which the carrier knew no identifier when it was last asked.'),
})
/** Several times the size of a usual list of 100,000 lines. */
const LIST_BYTES_MAX = 64 * 1024 * 1024

export const LIST_BODY = {
  bytesMax: LIST_BYTES_MAX,
  content: {
    'application/x-ndjson': { schema: () => z.string(), example: '{"identifier":"AB123456789SE"}\n"990000000000000001"\n' },
    'text/csv': { schema: () => z.string(), example: 'order;tracking_number\n1207;AB123456789SE\n' },
  },
}

export const LIST_COLUMN = text.describe('Which column of a CSV list to read: its name, or its number from 1.')

export const lineErrors = () => z.array(z.strictObject({ line: z.int().min(1), reason: z.string() }))

const reportSchema = named('WatchListReport', () =>
  z.strictObject({
    lines: wholeNumber(),
    watched: wholeNumber(),
    created: wholeNumber().describe('How many of the watched identifiers belong to new parcels.'),
    failed: wholeNumber(),
    erased: wholeNumber().describe('How many of the failed lines name erased parcels.'),
    errors: lineErrors().describe('The first 1,000 bad lines.'),
  }),
)

export type WatchListAnswer = AnswerOf<typeof reportSchema>

/** Lists of parcels, one parcel, and lists to watch. */
export const PARCEL_LISTS_ROUTES = [
  listRoute('/relay/parcels', {
    summary: 'List parcels',
    description: 'In the order of the next checks, the most overdue first; with `query`, in the order of the identifiers.',
    scope: 'status',
    query: LIST_QUERY,
    items: ['parcels', listedParcelSchema],
    example: 'query=AB&limit=10',
    read: ({ lookAtParcels }, asked) => lookAtParcels.list(asked),
    present: presentListed,
  }),
  queryRoute('post', '/relay/parcels/watch', {
    summary: 'Watch a list of parcels',
    description: 'At most 100,000 lines of at most 4,096 characters. Good lines are watched, and bad lines are reported by number.',
    query: query({
      atomic: flag.describe('`true`: if one line is bad, nothing is watched.'),
      column: LIST_COLUMN,
    }),
    body: LIST_BODY,
    answers: { 200: ['How many lines are watched, and which lines are bad', reportSchema] },
    problems: ['body_too_large', 'erased'],
    answer: async ({ watchList }, { ctx, by, query }) => [200, await withList(ctx, (list) => watchList({ ...list, ...query, by }))],
  }),
  callRoute('get', '/relay/parcels/:identifier', {
    summary: 'Show a parcel',
    description: 'Its identifiers, its cadence, and its history with the provenance of every entry.',
    scope: 'status',
    params: { identifier: IDENTIFIER },
    answers: { 200: ['The parcel', parcelSchema] },
    problems: ['bad_tracking_number', 'not_found'],
    answer: async ({ lookAtParcels }, { param }) => [200, presentInspected(await lookAtParcels.inspect(param('identifier')))],
  }),
]

/** Calls `take` with the list in the body of a request: its format, as the media type says, and its lines. */
export async function withList<Result>(
  ctx: Context,
  take: (list: { readonly format: WatchListFormat; readonly lines: AsyncIterable<string> }) => Promise<Result>,
): Promise<Result> {
  try {
    const format = FORMATS[(ctx.get('Content-Type').split(';')[0] ?? '').trim().toLowerCase()]
    if (format === undefined) throw new AppError('bad_request', 'Content-Type must be application/x-ndjson or text/csv.')
    return await take({ format, lines: linesOf(ctx.req) })
  } catch (error) {
    // Read and discard the rest of the list, so that its sender gets the refusal instead of a broken pipe.
    ctx.req.resume()
    if (!ctx.req.complete) ctx.set('Connection', 'close')
    throw error
  }
}

function linesOf(req: IncomingMessage): AsyncIterable<string> {
  return readLines(req.iterator({ destroyOnReturn: false }), { bytesMax: LIST_BYTES_MAX, lineLengthMax: WATCH_LINE_LENGTH_MAX })
}

const one = { params: { identifier: IDENTIFIER } } as const

const watchedAs = (created: boolean) => z.strictObject({ identifier: identifier(), created: z.literal(created) })
const refreshedSchema = () => z.strictObject({ identifier: identifier(), outcome: z.enum(['recorded', 'unknown']) })

export type WatchedAnswer = AnswerOf<() => ReturnType<typeof watchedAs>>
export type RefreshedAnswer = AnswerOf<typeof refreshedSchema>

/** Orders about one parcel. */
export const PARCELS_ROUTES = [
  callRoute('put', '/relay/parcels/:identifier/watch', {
    ...one,
    summary: 'Watch a parcel',
    description: 'Polls it from now on; while calls to the carrier pause, when it answers again.',
    answers: {
      200: ['The parcel is watched', () => watchedAs(false)],
      201: ['The parcel is watched, and new', () => watchedAs(true), location],
    },
    problems: ['bad_tracking_number', 'erased'],
    answer: async ({ manageParcels }, { by, param }) => {
      const watched = await manageParcels.watch(param('identifier'), by)
      return watched.created ? [201, watched, `/relay/parcels/${watched.identifier}`] : [200, watched]
    },
  }),
  callRoute('delete', '/relay/parcels/:identifier/watch', {
    ...one,
    summary: 'Stop watching a parcel',
    description: 'The relay does not poll it until a push names it or an application asks for it. Nothing is deleted.',
    answers: {
      200: ['The parcel is no longer watched', () => z.strictObject({ identifier: identifier(), stopped: z.literal('unwatched') })],
    },
    problems: ['bad_tracking_number', 'not_found'],
    answer: async ({ manageParcels }, { by, param }) => [200, await manageParcels.unwatch(param('identifier'), by)],
  }),
  callRoute('post', '/relay/parcels/:identifier/refresh', {
    ...one,
    summary: 'Ask the carrier about a parcel now',
    description:
      'The relay asks in every configured language. About an identifier without a parcel it asks in the first language, and adds a parcel if the carrier knows it. `unknown`: the carrier has answered that it does not know it.',
    answers: { 200: ['The carrier was asked', refreshedSchema] },
    problems: ['bad_tracking_number', 'erased', 'upstream_unavailable'],
    answer: async ({ manageParcels }, { by, param }) => [200, await manageParcels.refresh(param('identifier'), by)],
  }),
]
