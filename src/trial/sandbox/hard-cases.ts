import { hourMs, type ParcelPlan, plainParcel, plainScan, type Scan, spanMs, trackingIdOf } from './parcel-plan.ts'
import { between, drawFor, pick, type Random, randomFor } from './random.ts'
import { places, unknownWords, type Word, words } from './vocabulary.ts'

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

export interface WorldOptions {
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
