import { deriveEntries, orderHistory } from '../../../src/core/domain/history/history.ts'
import type { PollObservation, PushObservation } from '../../../src/core/domain/history/observation.ts'
import {
  type AnswerSource,
  betterOrderAnswer,
  type KeptAnswer,
  keepAnswers,
  keptAnswer,
  presentParcel,
} from '../../../src/core/domain/history/pull-response.ts'
import { type KeptSighting, listedId, mergeSightings, sightingsOf } from '../../../src/core/domain/history/sightings.ts'

/** Everything known about one parcel, as a value. The store keeps the same in rows, and tests compare the two. */
export interface ParcelRecord {
  readonly sightings: readonly KeptSighting[]
  readonly answers: readonly KeptAnswer[]
  readonly order: { readonly answer: KeptAnswer; readonly listed: readonly string[] } | null
  readonly trackingIds: readonly string[]
  readonly identifiers: readonly string[]
}

export const emptyParcel: ParcelRecord = { sightings: [], answers: [], order: null, trackingIds: [], identifiers: [] }

export function observe(parcel: ParcelRecord, observation: PushObservation | PollObservation): ParcelRecord {
  const listed = sightingsOf(observation)
  const lone: ParcelRecord = {
    sightings: mergeSightings([], listed, () => 0, null).kept,
    answers: observation.kind === 'poll' ? [keptAnswer(observation)] : [],
    order: observation.kind === 'poll' ? { answer: keptAnswer(observation), listed: listed.map(listedId) } : null,
    trackingIds: observation.trackingIds,
    identifiers: observation.kind === 'poll' ? [observation.asked, ...observation.trackingIds] : observation.trackingIds,
  }
  return unite(parcel, lone)
}

/** Unites the records of two parcels that proved to be one (DOMAIN 1.4). */
export function unite(a: ParcelRecord, b: ParcelRecord): ParcelRecord {
  const orderAnswer = betterOrderAnswer(a.order?.answer ?? null, b.order?.answer ?? null)
  return {
    sightings: mergeSightings(a.sightings, b.sightings, () => a.sightings.length, null).kept,
    answers: keepAnswers([...a.answers, ...b.answers]).kept,
    order: orderAnswer === null ? null : a.order?.answer === orderAnswer ? a.order : b.order,
    trackingIds: [...new Set([...a.trackingIds, ...b.trackingIds])],
    identifiers: [...new Set([...a.identifiers, ...b.identifiers])],
  }
}

/** Returns what answers contain about a record: its history, newest first, and the values of the parcel as a whole. */
export function presentRecord(parcel: ParcelRecord): AnswerSource {
  const entries = orderHistory(deriveEntries(parcel.sightings), parcel.order?.listed ?? [])
  return presentParcel(entries, parcel.answers, parcel.trackingIds)
}
