import { z } from 'zod'
import { parseStoredAs } from '../json-body.ts'

/*
 * Ages by the wall clock are wrong after the clock has jumped, and time in which the relay was stopped is nobody's fault. So what the relay gives
 * up unasked (`retention.held`) is aged by *lived time*: how long a relay has run on this store, by its monotonic clock. The rows have no column
 * for it. A mark notes which numbers were the highest at a lived time; a row with a higher number is younger than the mark.
 *
 * The same record shows a jump ahead. The clock is doubted for a day after one, unless it is put back before.
 */

/** The setting in which the store keeps the record. */
export const CLOCK_SETTING = 'clock'

/** The highest numbers in use at a moment. */
const numbers = { deliveryId: z.number(), inboxId: z.number(), sequence: z.number(), parcelId: z.number() }
const mark = z.object({ livedMs: z.number(), ...numbers })
const jump = z.object({ byMs: z.number(), atLivedMs: z.number() })
const record = z.object({
  process: z.string(),
  wallMs: z.number(),
  monotonicMs: z.number(),
  livedMs: z.number(),
  jump: jump.nullable(),
  marks: z.array(mark),
})

export type HighestNumbers = Readonly<Omit<z.infer<typeof mark>, 'livedMs'>>

/** What the store keeps about the relay's clocks: the last readings, the lived time, a jump ahead that is not trusted yet, and the marks. */
export type ClockRecord = Readonly<z.infer<typeof record>>

/** The readings of both clocks of a process. Monotonic readings of different processes cannot be compared. */
export type ClockReading = Pick<ClockRecord, 'process' | 'wallMs' | 'monotonicMs'>

/** While a process runs, the wall clock has jumped if it is off by this much. */
const JUMP_MS = 24 * 3_600_000
/** A relay may have been stopped. If its last reading is older than this, it cannot tell that from a jump. */
const STOPPED_MAX_MS = 36 * 3_600_000
/** How long the clock is doubted after a jump, in lived time. */
const DOUBTED_FOR_MS = 24 * 3_600_000
/** The marks are this share of `heldMs` apart, so that there are few of them. */
const MARKS = 100
const MARK_EVERY_LEAST_MS = 3_600_000

/** Adds a reading. `before` null: there was none. */
export function noteClock(before: ClockRecord | null, reading: ClockReading): ClockRecord {
  if (before === null) return { ...reading, livedMs: 0, jump: null, marks: [] }
  const isSame = before.process === reading.process
  const ranMs = isSame ? Math.max(0, reading.monotonicMs - before.monotonicMs) : 0
  const livedMs = before.livedMs + ranMs
  const offMs = reading.wallMs - before.wallMs - ranMs
  return { ...before, ...reading, livedMs, jump: jumpAfter(before, offMs, isSame, livedMs) }
}

function jumpAfter({ jump: known }: ClockRecord, offMs: number, isSame: boolean, livedMs: number): ClockRecord['jump'] {
  const hasJumped = offMs >= (isSame ? JUMP_MS : STOPPED_MAX_MS)
  if (known === null) return hasJumped ? { byMs: offMs, atLivedMs: livedMs } : null
  // Between processes a clock that seems to go on may have stood still, so only a step back counts.
  const byMs = known.byMs + (isSame || hasJumped ? offMs : Math.min(0, offMs))
  if (byMs < JUMP_MS || (!hasJumped && livedMs - known.atLivedMs >= DOUBTED_FOR_MS)) return null
  return { byMs, atLivedMs: hasJumped ? livedMs : known.atLivedMs }
}

/** Adds a mark if one is due. Drops the marks that are no longer needed for `heldMs`. */
export function markLife(record: ClockRecord, highest: HighestNumbers, heldMs: number): ClockRecord {
  const { livedMs } = record
  const last = record.marks.at(-1)
  if (last !== undefined && livedMs - last.livedMs < Math.max(MARK_EVERY_LEAST_MS, heldMs / MARKS)) return record
  const needed = record.marks.findLastIndex((one) => one.livedMs <= livedMs - heldMs)
  return { ...record, marks: [...record.marks.slice(Math.max(0, needed)), { livedMs, ...highest }] }
}

export const NO_NUMBERS: HighestNumbers = { deliveryId: 0, inboxId: 0, sequence: 0, parcelId: 0 }

/** What is older than `heldMs` in lived time: rows with these numbers or lower ones, and what was queued again at `livedMs` or before. */
export type Outlived = HighestNumbers & { readonly livedMs: number }

/** Rows from before the first mark count from that mark. */
export function outlivedBy(record: ClockRecord | null, heldMs: number): Outlived {
  const livedMs = (record?.livedMs ?? 0) - heldMs
  return { ...(record?.marks.findLast((one) => one.livedMs <= livedMs) ?? NO_NUMBERS), livedMs }
}

/** Whether a record differs enough from the stored one to be stored. */
export function isNewsOf(before: ClockRecord | null, now: ClockRecord): boolean {
  return (
    before === null ||
    before.process !== now.process ||
    before.marks !== now.marks ||
    before.jump?.byMs !== now.jump?.byMs ||
    now.livedMs - before.livedMs >= SAVED_EVERY_MS
  )
}

const SAVED_EVERY_MS = 30_000

/** How other clocks differ from ours, milliseconds; positive: they are ahead. Null: not known. */
export interface OtherClocks {
  readonly carrierAheadMs: number | null
  /** The clock of the relay's machine, if the relay uses a database server's clock. */
  readonly machineAheadMs: number | null
}

export const DOUBTS = ['jumped', 'carrier', 'machine'] as const

/** Why the clock is doubted. `aheadMs`: how far it seems to be ahead; negative: behind. */
export interface ClockDoubt {
  readonly because: (typeof DOUBTS)[number]
  readonly aheadMs: number
}

/** Another clock contradicts ours if they differ by this much, for example because of a wrong time zone. */
const OFF_MS = 3_600_000

/** Null: nothing speaks against the clock. A clock that contradicts ours says more than a jump. */
export function doubtOf(record: Pick<ClockRecord, 'jump'> | null, others: OtherClocks): ClockDoubt | null {
  return contradictionOf(others) ?? jumpOf(record)
}

export function contradictionOf({ carrierAheadMs, machineAheadMs }: OtherClocks): ClockDoubt | null {
  if (isOff(carrierAheadMs)) return { because: 'carrier', aheadMs: -carrierAheadMs }
  return isOff(machineAheadMs) ? { because: 'machine', aheadMs: -machineAheadMs } : null
}

function isOff(aheadMs: number | null): aheadMs is number {
  return aheadMs !== null && Math.abs(aheadMs) >= OFF_MS
}

export function encodeClockRecord(value: ClockRecord): Uint8Array {
  return Buffer.from(JSON.stringify(value))
}

/** Null: there is no record, or it is damaged. Then lived time begins anew, so nothing is given up too early. */
export function decodeClockRecord(stored: Uint8Array | null): ClockRecord | null {
  return stored === null ? null : parseStoredAs(record, Buffer.from(stored).toString())
}

function jumpOf(record: Pick<ClockRecord, 'jump'> | null): ClockDoubt | null {
  const jump = record?.jump ?? null
  return jump === null ? null : { because: 'jumped', aheadMs: Math.round(jump.byMs) }
}
