import { z } from 'zod'
import type { Entry } from '../../core/domain/history/history.ts'
import { APPROXIMATE_BECAUSE, type ApproximateBecause, type EntryNews } from '../../core/domain/history/overwritten.ts'
import { parseLanguageTag } from '../../core/domain/languages.ts'
import { instant, presentInstant } from '../../core/http/server/answer-schemas.ts'
import { instant as instantQuery, query, read } from '../../core/http/server/route.ts'

/** Asks what the relay knew of a parcel. */
export interface LookBackRequest {
  readonly identifier: string
  /** Epoch milliseconds; null, and whatever is later than now: now. */
  readonly asOfMs: number | null
  /** What was learnt after this is marked, epoch milliseconds; null: nothing is. It is earlier than the other. */
  readonly sinceMs: number | null
  /** The language of the answer to apps; null: the first that is configured. */
  readonly language: string | null
}

/** Why an answer may not be exactly what the relay said, in words. */
export const APPROXIMATE_WORDS: Readonly<Record<ApproximateBecause, string>> = {
  join: 'It was then several parcels, which have been joined since.',
  rebuild: 'A rebuild has corrected it since.',
  limit: 'It has changed so often that older states are not kept.',
  restore: 'The relay then answered from a store that a restore has replaced.',
  upgrade: 'This was before the version of the relay that keeps what changes overwrite.',
  erasure: 'A parcel with this identifier has been erased since.',
  retention: 'Retention has deleted parcels since, and may have deleted one with this identifier.',
}

/** A history as the relay knew it. */
export interface HistoryThen {
  readonly asOfMs: number
  readonly knownFromMs: number | null
  readonly approximate: readonly ApproximateBecause[]
  /** Newest first. */
  readonly entries: readonly Entry[]
  /** The identifiers that it had, and whether each was known to be a tracking id. */
  readonly identifiers: ReadonlyMap<string, boolean>
  readonly distributionType: string
  /** The bodies with which the relay would have answered an app. `latest` null: a 404, because no entry was known. */
  readonly answer: { readonly language: string; readonly all: string; readonly latest: string | null }
  /** By the sequence of the entry; null: `sinceMs` was not given. */
  readonly news: ReadonlyMap<number, EntryNews> | null
}

/** Tells what the relay knew of a parcel at a time. Throws `bad_tracking_number`, `bad_request` if the times are not in order, and `not_found` for what was not known then. */
export type LookBack = (request: LookBackRequest) => Promise<HistoryThen>

export const LOOK_BACK_QUERY = query({
  asOf: instantQuery.describe(
    'Shows what the relay knew at this time; if it is yet to come: now. `known.asOf` of the answer says which time it is.',
  ),
  since: instantQuery.describe('Marks what it has learnt after this time, which must be earlier than `asOf`, or than now.'),
  language: read(parseLanguageTag, 'must be a language tag such as sv').describe(
    'Of the answer to apps; by default the first that is configured.',
  ),
})

export const newsSchema = () =>
  z
    .strictObject({ kind: z.enum(['new', 'changed', 'confirmed']), doors: z.array(z.enum(['push', 'poll'])) })
    .nullable()
    .optional()
    .describe('Only with `since`: what was learnt of the entry after that time, and by which doors, the first one first; null: nothing.')

export const knownSchema = () =>
  z
    .strictObject({
      asOf: instant(),
      knownFrom: instant().nullable().describe('From when on something was known of the parcel; null: it is not known from when on.'),
      approximate: z
        .array(z.strictObject({ because: z.enum(APPROXIMATE_BECAUSE), detail: z.string() }))
        .describe('Why it may not be exactly what was known then; empty: it is exact.'),
      answer: z
        .strictObject({
          language: z.string().describe('The languages of its texts, as `Content-Language` names them.'),
          all: z.string().describe('The body of `GET /v1/status/{trackingNumber}/all`, byte for byte.'),
          latest: z.string().nullable().describe('The body of `GET /v1/status/{trackingNumber}/latest`; null: a 404.'),
        })
        .describe('How the relay would have answered an app.'),
    })
    .optional()
    .describe('Only with `asOf` or `since`: the status, the identifiers and the history are then those of that time, all else is as now.')

export function presentKnown({ asOfMs, knownFromMs, approximate, answer }: HistoryThen) {
  return {
    asOf: presentInstant(asOfMs),
    knownFrom: presentInstant(knownFromMs),
    approximate: approximate.map((because) => ({ because, detail: APPROXIMATE_WORDS[because] })),
    answer,
  }
}

export function presentNews(news: EntryNews | undefined) {
  return news === undefined ? null : { kind: news.kind, doors: [...news.doors] }
}
