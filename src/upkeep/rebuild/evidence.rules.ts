import { type KeptAnswer, keptAnswer, parseAllAnswer } from '../../core/domain/history/pull-response.ts'
import { pushDigest } from '../../core/domain/history/recording.ts'
import { type ListedSighting, listedId, mergeSightings, sightingId, sightingsOf } from '../../core/domain/history/sightings.ts'
import { parseWebhookEvent } from '../../core/domain/ingest/parse-push.ts'

export interface StoredPush {
  readonly parcelId: number
  /** See `pushDigest`. */
  readonly digest: string
  readonly contentEncoding: string | null
  readonly receivedAtMs: number
  /** Null: the bytes are no longer kept. */
  readonly body: Uint8Array | null
}

export interface StoredAnswer {
  readonly answer: KeptAnswer
  readonly decidesOrder: boolean
  /** Null: the bytes are no longer kept. */
  readonly body: Uint8Array | null
  /** What is kept of a deciding answer without its bytes: the `listedId` of each of its sightings, in its order; null: nothing. */
  readonly listed: readonly string[] | null
}

/** A sighting that stored bytes contain. `learntAtMs`: when the relay received the first of these bytes, epoch milliseconds. */
export interface ShownSighting extends ListedSighting {
  readonly learntAtMs: number
}

/** What the stored bytes of a parcel's pushes and answers contain. Pushes are added in batches, because their number has no limit. */
export interface Evidence {
  /** By `sightingId`. */
  readonly sightings: Map<string, ShownSighting>
  readonly trackingIds: Set<string>
  /** Whether some bytes were deleted, or this version cannot parse them. In both cases the stored sightings tell more than the bytes. */
  isPartial: boolean
  /** Whether some bytes do not match their digest. */
  isDamaged: boolean
}

export function noEvidence(): Evidence {
  return { sightings: new Map(), trackingIds: new Set(), isPartial: false, isDamaged: false }
}

/** Adding the same push again changes nothing. */
export function addPushes(evidence: Evidence, pushes: readonly StoredPush[]): void {
  for (const { body, digest, contentEncoding, receivedAtMs } of pushes) {
    if (body !== null && pushDigest(body) !== digest) {
      evidence.isDamaged = true
      continue
    }
    const reading = body === null ? null : parseWebhookEvent(body, contentEncoding)
    if (reading === null || !reading.ok) {
      evidence.isPartial = true
      continue
    }
    for (const value of reading.observation.trackingIds) evidence.trackingIds.add(value)
    for (const listed of sightingsOf(reading.observation)) {
      const id = sightingId(listed)
      const known = evidence.sightings.get(id)
      if (known === undefined || receivedAtMs < known.learntAtMs) evidence.sightings.set(id, { ...listed, learntAtMs: receivedAtMs })
    }
  }
}

/** An answer derived from its bytes, with the `listedId` of each of its sightings. If the bytes cannot be used: as it is stored. */
export interface ReadAnswer {
  readonly answer: KeptAnswer
  readonly listed: readonly string[]
}

/** Adds all answers of the parcel to the evidence, and returns each as derived from its bytes. */
export function addAnswers(evidence: Evidence, answers: readonly StoredAnswer[]): readonly ReadAnswer[] {
  let kept: ReturnType<typeof mergeSightings>['kept'] = []
  const read = answers
    .toSorted((a, b) => a.answer.askedAtMs - b.answer.askedAtMs)
    .map(({ answer, body, listed: stored }): ReadAnswer => {
      const { language, askedAtMs } = answer
      const reading = body === null ? null : parseAllAnswer(body, { asked: '', language, contentLanguage: null, askedAtMs })
      if (reading === null || !reading.ok) {
        evidence.isPartial = true
        return { answer, listed: stored ?? [] }
      }
      const derived = keptAnswer(reading.observation)
      if (derived.digest !== answer.digest) {
        evidence.isDamaged = true
        return { answer, listed: stored ?? [] }
      }
      for (const value of reading.observation.trackingIds) evidence.trackingIds.add(value)
      const listed = sightingsOf(reading.observation)
      kept = mergeSightings(kept, listed, () => 0, askedAtMs).kept
      return { answer: derived, listed: listed.map(listedId) }
    })
  for (const { sequence: _none, audience: _nobody, learntAtMs, ...listed } of kept)
    evidence.sightings.set(sightingId(listed), { ...listed, learntAtMs: learntAtMs ?? listed.askedAtMs })
  return read
}
