import { HOUR_MS } from '../../support/runner/constants.ts'
import { drawWith } from '../../support/runner/seeded.ts'

/** Matches the identifiers and words of parcels. Each ends with the number of its parcel in seven digits. */
const PLANTED = /(?:QZX[NWL]|88019[12])(\d{7})/g

export interface PlannedScan {
  readonly atMs: number
  readonly status: string
  readonly detailedStatus: string
}

/** A parcel of the year: what the carrier does with it, and what happened to it at the relay. */
export interface YearParcel {
  readonly number: number
  readonly trackingNumber: string
  readonly trackingIds: readonly string[]
  /** A word that is in every text of the parcel. */
  readonly word: string
  /** A word that is in every location of the parcel. */
  readonly location: string
  /** Whether the shop makes the relay watch the parcel. If not, the relay learns of the parcel by a push. */
  readonly isOrdered: boolean
  /** Oldest first. */
  readonly scans: readonly PlannedScan[]
  /** The number of scans that have been made. */
  made: number
  /** The time at which an app last asked for the parcel, or the shop ordered it. */
  askedAtMs: number
  erasedAtMs: number | null
}

const STAGES: readonly (readonly [status: string, detailedStatus: string, hours: readonly [from: number, to: number], odds: number])[] = [
  ['Created', 'Created', [0, 18], 1],
  ['Ingested', 'Ingested', [1, 8], 1],
  ['TerminalArrived', 'ArrivedT1', [1, 6], 1],
  ['TerminalUpdated', 'ParcelUpdated', [1, 3], 0.3],
  ['TerminalArrived', 'ArrivedT2', [3, 10], 0.9],
  ['DeliveryStarted', 'DeliveryStarted', [1, 8], 1],
  ['DeliverySucceeded', 'DeliverySucceededMailbox', [1, 5], 0.95],
]

/** Makes the nth parcel of the year, which the carrier announces on the day that begins at `dayMs`. */
export function bornParcel(nth: number, dayMs: number, random: () => number): YearParcel {
  const { below } = drawWith(random)
  const digits = String(nth).padStart(7, '0')
  const scans: PlannedScan[] = []
  let atMs = dayMs
  for (const [status, detailedStatus, [from, to], odds] of STAGES) {
    if (random() >= odds) continue
    atMs += from * HOUR_MS + below((to - from) * HOUR_MS)
    // A whole second would look like a time whose milliseconds were cut off.
    if (atMs % 1000 === 0) atMs += 1
    scans.push({ atMs, status, detailedStatus })
  }
  return {
    number: nth,
    trackingNumber: `QZXN${digits}`,
    trackingIds: random() < 0.5 ? [`880191${digits}`] : [`880191${digits}`, `880192${digits}`],
    word: `QZXW${digits}`,
    location: `QZXL${digits}`,
    isOrdered: random() < 0.7,
    scans,
    made: 0,
    askedAtMs: 0,
    erasedAtMs: null,
  }
}

/** Returns the numbers of the parcels whose identifiers or words appear in a text. */
export function plantedIn(text: string): ReadonlySet<number> {
  return new Set(Array.from(text.matchAll(PLANTED), ([, digits]) => Number(digits)))
}

export const madeScans = (parcel: YearParcel): readonly PlannedScan[] => parcel.scans.slice(0, parcel.made)

export const keyOf = ({ status, detailedStatus, atMs }: PlannedScan): string =>
  `${status} ${detailedStatus} ${new Date(atMs).toISOString()}`

export const isFinished = (parcel: YearParcel): boolean => parcel.made === parcel.scans.length

/** Returns an identifier that the relay knows. */
export const knownAs = ({ isOrdered, askedAtMs, trackingNumber, trackingIds: [first = ''] }: YearParcel): string =>
  isOrdered || askedAtMs > 0 ? trackingNumber : first
