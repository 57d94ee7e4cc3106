import { deriveEntries, type Entry, orderHistory } from '../../../src/core/domain/history/history.ts'
import { encodeAll, encodeLatest, presentParcel } from '../../../src/core/domain/history/pull-response.ts'
import type { KeptSighting } from '../../../src/core/domain/history/sightings.ts'
import type { Seen } from './observations.ts'
import { emptyParcel, observe, type ParcelRecord, unite } from './parcel-record.ts'

export type Matcher = (sightings: readonly KeptSighting[]) => readonly Entry[]

/** Returns the parcels that a relay would have after these observations, joins included. */
export function recordAll(all: readonly Seen[]): readonly ParcelRecord[] {
  return all.reduce<readonly ParcelRecord[]>((parcels, { observation }) => {
    const lone = observe(emptyParcel, observation)
    const related = parcels.filter((parcel) => parcel.identifiers.some((id) => lone.identifiers.includes(id)))
    const united = related.reduce(unite, emptyParcel)
    return [...parcels.filter((parcel) => !related.includes(parcel)), observe(united, observation)]
  }, [])
}

/** Returns every answer, for every identifier and language, as the bytes served. */
export function answers(parcels: readonly ParcelRecord[], derive: Matcher = deriveEntries): Readonly<Record<string, string>> {
  const served = parcels.flatMap((parcel) => {
    const entries = orderHistory(derive(parcel.sightings), parcel.order?.listed ?? [])
    const source = presentParcel(entries, parcel.answers, parcel.trackingIds)
    return ['en', 'sv'].flatMap((language) =>
      parcel.identifiers.flatMap((id): [string, string][] => [
        [`${id}/all?${language}`, encodeAll(source, [language, 'en', 'sv']).body],
        [`${id}/latest?${language}`, encodeLatest(source, [language, 'en', 'sv'])?.body ?? 'none'],
      ]),
    )
  })
  return Object.fromEntries(served.sort(([a], [b]) => (a < b ? -1 : 1)))
}
