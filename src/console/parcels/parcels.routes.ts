import type { IncomingMessage } from 'node:http'
import type { Context } from 'koa'
import { z } from 'zod'
import { type InspectedIdentifier, WATCH_LINE_LENGTH_MAX, type WatchListFormat } from '../../core/domain/admin/parcel-list.ts'
import { AppError } from '../../core/domain/errors.ts'
import { type Entry, learningOf } from '../../core/domain/history/history.ts'
import { readReference } from '../../core/domain/history/order-context.ts'
import { repeatedOf } from '../../core/domain/history/parcel-state.ts'
import {
  type AnswerOf,
  IDENTIFIER,
  identifier,
  instant,
  location,
  named,
  presentInstant,
  wholeNumber,
} from '../../core/http/server/answer-schemas.ts'
import { flag, oneOf, page, query, read, text } from '../../core/http/server/route.ts'
import { callRoute, listRoute, queryRoute } from '../../core/http/server/route-shapes.ts'
import { readLines } from '../../core/http/server/text-body.ts'
import { type HistoryThen, knownSchema, LOOK_BACK_QUERY, newsSchema, presentKnown, presentNews } from './look-back.ts'
import { type AwaitedParcel, type ExplainedParcel, readCursor, readPrefix, STOPPED_REASONS } from './parcel-queries.ts'

/** The members of a parcel, both in a list and when it is shown alone. */
const parcelMembers = <More extends z.core.$ZodLooseShape>(more: More) => ({
  status: z.string().nullable().describe('The latest status; null: no entry is known.'),
  statusAt: instant().nullable(),
  entries: wholeNumber(),
  order: z.strictObject(orderMembers()).describe('What apps and operators say of its order.'),
  full: z.boolean().describe('Whether the parcel has as many entries as a parcel may have.'),
  cadence: z.strictObject({
    watchedAt: instant().nullable(),
    nextCheckAt: instant().nullable().describe('When the carrier is asked next; with `waitsForCarrier`, the earliest time.'),
    waitsForCarrier: z.boolean().describe('Whether calls to the carrier pause, so that the parcel is checked when it answers again.'),
    lastCheckAt: instant().nullable(),
    heardAt: instant().nullable().describe('When a push or poll last reported on the parcel.'),
    failures: wholeNumber().describe('How many polls in a row have failed; 0: the carrier has answered the last one.'),
    stopped: z.enum(STOPPED_REASONS).nullable().describe('Why the parcel is not polled; null: it is polled.'),
    ...more,
  }),
})

/** What is said of the order of a parcel. */
export const orderMembers = () => ({
  reference: z.string().nullable().describe('The number of its order, as an app has said it; null: nobody has.'),
  labels: z.record(z.string(), z.string()).describe('By name.'),
  note: z.string().nullable().describe('Only the relay shows it: no endpoint is sent it.'),
})

const listedParcelSchema = named('ListedParcel', () =>
  z.strictObject({
    identifiers: z.array(identifier()),
    trackingNumbers: z
      .array(identifier())
      .describe('The identifiers that are tracking numbers; empty: none is known yet, because pushes name tracking ids only.'),
    ...parcelMembers({}),
  }),
)

const source = () => z.enum(['push', 'poll'])

const languages = () => z.array(z.string())

const entrySchema = named('ParcelEntry', () =>
  z.strictObject({
    status: z.string(),
    detailedStatus: z.string(),
    eventTimestamp: z.string().describe('As the carrier wrote it.'),
    location: z.string().describe('Empty: not known.'),
    displayToConsumer: z.boolean(),
    languages: languages(),
    sequence: wholeNumber().describe('The sequence in the feed of the event that first reported the entry.'),
    learntAt: instant().nullable().describe('Null: it is not known.'),
    learntBy: source(),
    confirmedAt: instant()
      .nullable()
      .describe('When the other source, push or poll, reported the same; null: it has not, or the time is not known.'),
    confirmedBy: source().nullable(),
    provenance: z
      .array(
        z.strictObject({
          door: source(),
          languages: languages(),
          sequence: wholeNumber(),
          learntAt: instant().nullable(),
          askedAt: instant()
            .nullable()
            .describe('When the poll was made; null: a push reported the entry, or with `asOf` polls have repeated it since.'),
        }),
      )
      .describe('The pushes and polls that reported the entry, the first one first.'),
    news: newsSchema(),
  }),
)

const parcelSchema = named('Parcel', () =>
  z.strictObject({
    identifiers: z.array(
      z.strictObject({
        value: identifier(),
        kind: z.enum(['tracking id', 'tracking number']),
        carrierKnowsIt: z.boolean(),
        carrierRefusedItAt: instant().nullable(),
      }),
    ),
    ...parcelMembers({
      nextCheckBecause: z
        .string()
        .nullable()
        .describe(
          'A sentence that says why the parcel is polled then, or is not polled; null: nobody ever watched it, or the reason is not known now.',
        ),
    }),
    history: z.array(entrySchema()).describe('Newest first.'),
    known: knownSchema(),
  }),
)

export type ListedParcelAnswer = AnswerOf<typeof listedParcelSchema>
export type ParcelAnswer = AnswerOf<typeof parcelSchema>

function presentListed({ identifiers, ...awaited }: AwaitedParcel): ListedParcelAnswer {
  const trackingNumbers = identifiers.filter(({ isTrackingId }) => !isTrackingId)
  return { identifiers: valuesOf(identifiers), trackingNumbers: valuesOf(trackingNumbers), ...presentState(awaited) }
}

function valuesOf(identifiers: readonly InspectedIdentifier[]): readonly string[] {
  return identifiers.map(({ value }) => value)
}

function presentState({ state, order, waitsForCarrier }: Omit<AwaitedParcel, 'identifiers'>) {
  const { reference, labels, note } = order
  return {
    status: state.latest?.status ?? null,
    statusAt: presentInstant(state.latest?.atMs ?? null),
    entries: state.entryCount,
    order: { reference, labels, note },
    full: state.full,
    cadence: {
      watchedAt: presentInstant(state.watchedAtMs),
      nextCheckAt: presentInstant(state.nextPollAtMs),
      waitsForCarrier,
      lastCheckAt: presentInstant(state.checkedAtMs),
      heardAt: presentInstant(state.lastSeenAtMs),
      failures: state.failures,
      stopped: state.nextPollAtMs === null ? state.stopped : null,
    },
  }
}

/** Presents a parcel with its history and where each entry came from. */
function presentInspected({ identifiers, entries, nextPollBecause, ...awaited }: ExplainedParcel): ParcelAnswer {
  const shown = presentState(awaited)
  const cadence = { ...shown.cadence, nextCheckBecause: nextPollBecause }
  return { identifiers: identifiers.map(presentIdentifier), ...shown, cadence, history: entries.map(presentEntry) }
}

/** Presents a parcel as the relay knew it. */
function presentThen(parcel: ExplainedParcel, then: HistoryThen): ParcelAnswer {
  const { entries, news } = then
  const identifiers = parcel.identifiers.flatMap((one) => {
    const isTrackingId = then.identifiers.get(one.value)
    return isTrackingId === undefined ? [] : [{ ...one, isTrackingId }]
  })
  const state = { ...parcel.state, ...repeatedOf(parcel.state, entries, 0, then.asOfMs) }
  return {
    ...presentInspected({ ...parcel, state, entries, identifiers }),
    history: entries.map((entry) => {
      const shown = presentEntry(entry)
      // Not every repetition is kept, so a later poll hides when the one before it was made.
      const provenance = shown.provenance.map((one) =>
        one.askedAt !== null && Date.parse(one.askedAt) > then.asOfMs ? { ...one, askedAt: null } : one,
      )
      return { ...shown, provenance, ...(news === null ? {} : { news: presentNews(news.get(entry.sequence)) }) }
    }),
    known: presentKnown(then),
  }
}

function presentIdentifier({ value, isTrackingId, refusedAtMs }: InspectedIdentifier): ParcelAnswer['identifiers'][number] {
  const kind = isTrackingId ? 'tracking id' : 'tracking number'
  return { value, kind, carrierKnowsIt: refusedAtMs === null, carrierRefusedItAt: presentInstant(refusedAtMs) }
}

function presentEntry(entry: Entry): ParcelAnswer['history'][number] {
  const { status, detailedStatus, eventTimestamp, location, displayToConsumer, sequence, texts } = entry
  const { first, confirmed } = learningOf(entry)
  return {
    status,
    detailedStatus,
    eventTimestamp,
    location,
    displayToConsumer,
    languages: Object.keys(texts).sort(),
    /** The sequence of the event that first reported the entry. */
    sequence,
    learntAt: presentInstant(first.atMs),
    learntBy: first.source,
    confirmedAt: presentInstant(confirmed?.atMs ?? null),
    confirmedBy: confirmed?.source ?? null,
    provenance: entry.members
      .map(({ sighting, sequence: learnt, learntAtMs, askedAtMs }) => ({
        door: sighting.source,
        languages: Object.keys(sighting.texts).sort(),
        sequence: learnt,
        learntAt: presentInstant(learntAtMs),
        askedAt: sighting.source === 'poll' ? presentInstant(askedAtMs) : null,
      }))
      .toSorted((a, b) => a.sequence - b.sequence),
  }
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
  reference: read(readReference, 'must be the number of an order: 1 to 100 characters').describe(
    'Only the parcels of the order with this number, in the order in which they became known. Not together with `query`.',
  ),
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
  queryRoute('get', '/relay/parcels/:identifier', {
    summary: 'Show a parcel',
    description:
      'Its identifiers, its cadence, and its history with the provenance of every entry. With `asOf`: as the relay knew it then; what was not known then is a 404.',
    scope: 'status',
    params: { identifier: IDENTIFIER },
    query: LOOK_BACK_QUERY,
    answers: { 200: ['The parcel', parcelSchema] },
    problems: ['bad_tracking_number', 'not_found'],
    answer: async ({ lookAtParcels, lookBack }, { param, query: { asOf, since, language } }) => {
      const parcel = await lookAtParcels.inspect(param('identifier'))
      if (asOf === null && since === null) return [200, presentInspected(parcel)]
      return [200, presentThen(parcel, await lookBack({ identifier: param('identifier'), asOfMs: asOf, sinceMs: since, language }))]
    },
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
