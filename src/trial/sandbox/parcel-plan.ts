import { distributionTypes, places, type Texts, unknownWords, type Word, words } from './vocabulary.ts'

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

const hourMs = 3_600_000

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
function trackingIdOf(seed: number, index: number, nth: number): string {
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
function plainParcel(seed: number, index: number, startMs: number): ParcelPlan {
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

/**
 * Adds one hard case to a parcel. However cases are combined, an entry of the pull API still matches its push: both have the same status, detailed
 * status and second. Their locations are equal, or one is empty. Their milliseconds are equal, or one time is a whole second.
 */
type Harden = (plan: ParcelPlan, random: Random, seed: number, index: number) => ParcelPlan

function isOf(word: Word): (scan: Scan) => boolean {
  return (scan) => scan.detailedStatus === word.detailedStatus && scan.status === word.status
}

function withScans(plan: ParcelPlan, word: Word, change: (scan: Scan, nth: number) => readonly Scan[]): ParcelPlan {
  return { ...plan, scans: plan.scans.flatMap((scan, nth) => (isOf(word)(scan) ? change(scan, nth) : [scan])) }
}

// The random number depends on the time, not on the scan, so that equal entries stay equal.
const wholeSecondPulls: Harden = (plan, _random, seed) => ({
  ...plan,
  scans: plan.scans.map((scan) => {
    const seconds = drawFor(seed, 'pull time', plan.trackingNumber, scan.atMs) < 0.7
    return { ...scan, pullTime: seconds ? ('seconds' as const) : ('zeros' as const) }
  }),
})

const equalInstants: Harden = (plan, random) =>
  withScans(plan, words.arrivedT2, (scan) => [
    scan,
    plainScan(`${scan.id}/same-instant`, words.updated, scan.atMs, scan.pullLocation, random),
  ])

const twoPlaces: Harden = (plan, random) =>
  withScans(plan, words.deliveryStarted, (scan) => {
    const elsewhere = places.find((place) => place !== scan.pullLocation) ?? ''
    return [scan, { ...scan, id: `${scan.id}/elsewhere`, pushLocation: elsewhere, pullLocation: elsewhere, tie: random() }]
  })

const equalEntries: Harden = (plan, random) =>
  withScans(plan, words.ingested, (scan) => {
    const copies = Array.from({ length: between(random, 1, 3) }, (_, nth) => ({
      ...scan,
      id: `${scan.id}/again-${nth + 1}`,
      publishedAtMs: scan.publishedAtMs + (nth + 1) * 1_000,
    }))
    return [scan, ...copies]
  })

const emptyPullLocation: Harden = (plan) => withScans(plan, words.arrivedT1, (scan) => [{ ...scan, pullLocation: '' }])

const emptyPushLocation: Harden = (plan, random) =>
  withScans(plan, words.delivered, (scan) => [{ ...scan, pushLocation: random() < 0.7 ? null : '' }])

function amended(
  plan: ParcelPlan,
  word: Word,
  amend: (scan: Scan) => Pick<ParcelPlan['amendments'][number], 'kind' | 'texts'>,
): ParcelPlan {
  const scan = plan.scans.find(isOf(word))
  if (scan === undefined) return plan
  return { ...plan, amendments: [...plan.amendments, { scanId: scan.id, atMs: scan.publishedAtMs + 3 * hourMs, ...amend(scan) }] }
}

const textsChanged: Harden = (plan) =>
  amended(plan, words.arrivedT2, () => ({
    kind: 'changed',
    texts: {
      en: { consumer: 'Your parcel is near, but later than planned', detailed: 'Second terminal, delayed' },
      sv: { consumer: 'Ditt paket är nära, men försenat', detailed: 'Andra terminalen, försenat' },
    },
  }))

const textsWithdrawn: Harden = (plan) => amended(plan, words.created, () => ({ kind: 'withdrawn', texts: {} }))

const trackingIdsAdded: Harden = (plan, random, seed, index) => {
  const scan = plan.scans.find(isOf(words.arrivedT2))
  const atMs = (scan?.publishedAtMs ?? 0) + 60_000
  return { ...plan, laterTrackingId: { id: trackingIdOf(seed, index, 2), atMs, first: random() < 0.5 } }
}

const backDated: Harden = (plan) => {
  const newer = plan.scans.find(isOf(words.arrivedT2))
  if (newer === undefined) return plan
  return withScans(plan, words.arrivedT1, (scan) => [{ ...scan, publishedAtMs: newer.publishedAtMs + 600_000 }])
}

const unknownWord: Harden = (plan, random) =>
  withScans(plan, words.arrivedT1, (scan) => {
    const odd = plainScan(
      `${scan.id}/odd`,
      pick(random, unknownWords),
      scan.atMs + between(random, 300_000, 1_800_000),
      pick(random, places),
      random,
    )
    return [scan, odd]
  })

const unknownFields: Harden = (plan) => ({
  ...plan,
  extra: [
    ['consignment', '12345678901234567890'],
    ['links', `{"self":{"href":"/p/${plan.trackingNumber}","templated":false},"all":[]}`],
  ],
  scans: plan.scans.map((scan) => ({
    ...scan,
    extra: [
      ['scanNumber', '98765432109876543210'],
      ['handling', `{"hub":{"lanes":[${scan.atMs % 9},2.50,{"spare":null}]}}`],
    ],
  })),
})

const hardenings = {
  // The first four cases add scans. They come first, so that all other cases apply to the added scans too.
  equalInstants,
  twoPlaces,
  equalEntries,
  unknownWords: unknownWord,
  emptyPullLocation,
  emptyPushLocation,
  backDated,
  wholeSecondPulls,
  textsChanged,
  textsWithdrawn,
  trackingIdsAdded,
  unknownFields,
  numberOnly: (plan) => ({ ...plan, numberOnly: true }),
  spacedBodies: (plan) => ({ ...plan, spacedBodies: true }),
} as const satisfies Record<string, Harden>

export type HardCase = keyof typeof hardenings

export function isHardCase(name: string): name is HardCase {
  return Object.hasOwn(hardenings, name)
}

export const hardCases: readonly HardCase[] = Object.keys(hardenings).filter(isHardCase)

/** The fraction of parcels that get each hard case. */
export type Mix = Readonly<Record<HardCase, number>>

export function eachHardCase(of: (name: HardCase) => number): Readonly<Record<HardCase, number>> {
  return {
    equalInstants: of('equalInstants'),
    twoPlaces: of('twoPlaces'),
    equalEntries: of('equalEntries'),
    unknownWords: of('unknownWords'),
    emptyPullLocation: of('emptyPullLocation'),
    emptyPushLocation: of('emptyPushLocation'),
    backDated: of('backDated'),
    wholeSecondPulls: of('wholeSecondPulls'),
    textsChanged: of('textsChanged'),
    textsWithdrawn: of('textsWithdrawn'),
    trackingIdsAdded: of('trackingIdsAdded'),
    unknownFields: of('unknownFields'),
    numberOnly: of('numberOnly'),
    spacedBodies: of('spacedBodies'),
  }
}

interface WorldOptions {
  readonly seed: number
  readonly parcels: number
  readonly mix: Mix
  /** The latest time of a planned scan. */
  readonly anchorMs: number
}

/** Exactly the wanted fraction of parcels gets each hard case. */
export function planWorld({ seed, parcels, mix, anchorMs }: WorldOptions): readonly ParcelPlan[] {
  let plans = Array.from({ length: parcels }, (_, index) => plainParcel(seed, index, anchorMs - spanMs))
  for (const name of hardCases) {
    const order = plans.map((_, index) => index).sort((a, b) => drawFor(seed, name, 'chosen', a) - drawFor(seed, name, 'chosen', b))
    const chosen = new Set(order.slice(0, Math.round(mix[name] * parcels)))
    plans = plans.map((plan, index) => (chosen.has(index) ? hardenings[name](plan, randomFor(seed, name, index), seed, index) : plan))
  }
  return plans
}

/** Hashes a seed and names to a 32-bit number. With different names, random decisions are independent of each other. */
function mix(seed: number, names: readonly (string | number)[]): number {
  let hash = Math.imul(seed | 0, 0x9e3779b1) ^ 0x811c9dc5
  for (const letter of names.join('\u0001')) hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

export type Random = () => number

/** Creates a generator of numbers in [0, 1). The same seed and names give the same numbers. */
export function randomFor(seed: number, ...names: readonly (string | number)[]): Random {
  let state = mix(seed, names)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let word = Math.imul(state ^ (state >>> 15), 1 | state)
    word = (word + Math.imul(word ^ (word >>> 7), 61 | word)) ^ word
    return ((word ^ (word >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Returns a number in [0, 1). The same seed and names give the same number. */
export function drawFor(seed: number, ...names: readonly (string | number)[]): number {
  return randomFor(seed, ...names)()
}

function between(random: Random, from: number, to: number): number {
  return Math.floor(from + random() * (to - from))
}

export function pick<T>(random: Random, choices: readonly [T, ...T[]]): T {
  return choices[Math.floor(random() * choices.length)] ?? choices[0]
}

export function shuffled<T>(random: Random, items: readonly T[]): readonly T[] {
  const left = [...items]
  const drawn: T[] = []
  while (left.length > 0) drawn.push(...left.splice(Math.floor(random() * left.length), 1))
  return drawn
}
