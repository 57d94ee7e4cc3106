import type { OverwrittenWrite } from '../../../src/core/domain/history/change-set.ts'
import type { Overwritten } from '../../../src/core/domain/history/overwritten.ts'
import { encodeAll, encodeLatest, headOf } from '../../../src/core/domain/history/pull-response.ts'
import type { HistoryAsOf, KnownHistory } from '../../../src/insight/as-of/as-of.rules.ts'
import type { ParcelRecord } from '../history/parcel-record.ts'

const LANGUAGES = ['en', 'sv']

/** What the rule takes of a parcel in memory. */
export function knownOf(parcel: ParcelRecord, overwritten: readonly OverwrittenWrite[]): KnownHistory {
  return {
    sightings: parcel.sightings,
    head: headOf(parcel.answers),
    order: parcel.order?.listed ?? [],
    trackingIds: parcel.trackingIds,
    identifiers: parcel.identifiers,
    overwritten: overwritten.map(({ sequence, learntAtMs, value }) => ({ sequence, learntAtMs, ...(JSON.parse(value) as Overwritten) })),
    isCut: false,
    marks: [],
    since: null,
    restores: [],
  }
}

/** The answers to apps as the model names them (`answers`), by kind and language. Empty: nothing was known. */
export function answersAsOf({ source }: HistoryAsOf): Readonly<Record<string, string>> {
  if (source === null) return {}
  return Object.fromEntries(
    LANGUAGES.flatMap((language) => [
      [`all?${language}`, encodeAll(source, [language, 'en', 'sv']).body],
      [`latest?${language}`, encodeLatest(source, [language, 'en', 'sv'])?.body ?? 'none'],
    ]),
  )
}
