import { between, drawFor, pick, type Random, randomFor } from './random.ts'
import { distributionTypes, places, type Texts, type Word, words } from './vocabulary.ts'

/** A member of a JSON object. Its value is JSON text, so that large numbers and deep nesting stay as written. */
export type Member = readonly [name: string, json: string]

/** How the pull API writes the time of an entry: with milliseconds, without, or with `.000`. Pushes always have the milliseconds. */
export type PullTime = 'milliseconds' | 'seconds' | 'zeros'

/** A planned entry of a parcel. Its push and its entry in pulls may differ. */
export interface Scan {
  readonly id: string
  readonly status: string
  readonly detailedStatus: string
  readonly displayToConsumer: boolean
  readonly texts: Texts
  readonly atMs: number
  /** When the carrier publishes the entry: its push is sent at this time, and the pull API lists the entry from then on. */
  readonly publishedAtMs: number
  readonly pushLocation: string | null
  readonly pullLocation: string
  readonly pullTime: PullTime
  /** The carrier sorts entries of the same instant by this number. */
  readonly tie: number
  readonly extra: readonly Member[]
}

/** A change of an entry's texts. From `atMs` on, the pull API shows the entry with these texts. Nothing is pushed. */
export interface Amendment {
  readonly scanId: string
  readonly atMs: number
  readonly kind: 'changed' | 'withdrawn'
  readonly texts: Texts
}

/** Everything that will happen to a parcel, planned in advance. */
export interface ParcelPlan {
  readonly trackingNumber: string
  /** The tracking ids that the parcel has from the start. */
  readonly trackingIds: readonly string[]
  readonly laterTrackingId: { readonly id: string; readonly atMs: number; readonly first: boolean } | null
  readonly distributionType: string
  /** Whether the pull API finds the parcel only by its tracking number. */
  readonly numberOnly: boolean
  /** Whether the JSON of its pushes has line breaks and indentation. */
  readonly spacedBodies: boolean
  /** Oldest first. */
  readonly scans: readonly Scan[]
  readonly amendments: readonly Amendment[]
  readonly extra: readonly Member[]
}

export const hourMs = 3_600_000

/** The longest time that the scans of a parcel may take. The simulated clock starts this long before the latest planned scan. */
export const spanMs = 56 * hourMs

type Stage = readonly [word: Word, afterHours: readonly [from: number, to: number], odds: number]

const stages: readonly Stage[] = [
  [words.created, [0, 12], 1],
  [words.ingested, [1, 8], 1],
  [words.arrivedT1, [1, 4], 1],
  [words.updated, [1, 3], 0.3],
  [words.arrivedT2, [4, 10], 1],
  [words.deliveryStarted, [1, 4], 1],
  [words.arrivedT3, [1, 3], 0.3],
  [words.delivered, [1, 5], 1],
]

/** Makes a scan whose push and pull do not differ. */
export function plainScan(id: string, word: Word, atMs: number, location: string, random: Random): Scan {
  const { status, detailedStatus, displayToConsumer, texts } = word
  return {
    id,
    status,
    detailedStatus,
    displayToConsumer,
    texts,
    atMs,
    publishedAtMs: atMs + between(random, 1_000, 90_000),
    pushLocation: location === '' ? null : location,
    pullLocation: location,
    pullTime: 'milliseconds',
    tie: random(),
    extra: [],
  }
}

function plainScans(trackingNumber: string, startMs: number, random: Random): readonly Scan[] {
  const scans: Scan[] = []
  let atMs = startMs
  for (const [word, [from, to], odds] of stages) {
    if (random() >= odds) continue
    atMs += between(random, from * hourMs, to * hourMs)
    // Avoid whole seconds, at which pushes and pulls without milliseconds have the same time.
    if (atMs % 1000 === 0) atMs += 1
    const location = word === words.created ? '' : pick(random, places)
    scans.push(plainScan(`${trackingNumber}/${scans.length + 1}`, word, atMs, location, random))
  }
  return scans
}

function trackingNumberOf(seed: number, index: number): string {
  const letter = (name: string) => String.fromCharCode(65 + Math.floor(drawFor(seed, name, index) * 26))
  const offset = Math.floor(drawFor(seed, 'numbers') * 900_000_000)
  return `${letter('first')}${letter('second')}${100_000_000 + ((index * 7919 + offset) % 900_000_000)}SE`
}

/** Makes a tracking id that no other parcel has. */
export function trackingIdOf(seed: number, index: number, nth: number): string {
  return `37${String(Math.abs(seed) % 1000).padStart(3, '0')}${String(index * 10 + nth).padStart(13, '0')}`
}

export const uneventful = {
  laterTrackingId: null,
  distributionType: distributionTypes[0],
  numberOnly: false,
  spacedBodies: false,
  scans: [],
  amendments: [],
  extra: [],
}

/** Plans a parcel without hard cases. The seed, the index and the start determine the plan. */
export function plainParcel(seed: number, index: number, startMs: number): ParcelPlan {
  const random = randomFor(seed, 'parcel', index)
  const trackingNumber = trackingNumberOf(seed, index)
  return {
    ...uneventful,
    trackingNumber,
    trackingIds: random() < 0.5 ? [trackingIdOf(seed, index, 0)] : [trackingIdOf(seed, index, 0), trackingIdOf(seed, index, 1)],
    distributionType: pick(random, distributionTypes),
    scans: plainScans(trackingNumber, startMs, random),
  }
}
