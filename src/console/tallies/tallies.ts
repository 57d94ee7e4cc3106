import {
  type CallSpender,
  latenessClass,
  type QuestionEnd,
  spanStart,
  type TallyAddition,
  type TallyFlush,
  type TallyKind,
} from '../../core/domain/admin/tally.ts'
import { dayIn } from '../../core/domain/calendar.ts'
import type { Meter } from '../../core/flow/ports.ts'
import type { Part, Writes } from '../../core/flow/relay-part.ts'

/** Counts by the hour, and stores the counts. The meter counts the same things, but only in total since the process started. */
export type Tallies = ReturnType<typeof createTallies>

export interface TalliesPorts extends Part<'clock', 'now'>, Writes<'addTallies'> {
  /** A name for this process that no other process ever has. */
  readonly process: string
  /** Free bytes on the disk of the store; infinity: the store is on a server, which watches its own disk. */
  readonly freeBytes: () => number
  /** The time zone of the days of the carrier's report. */
  readonly zone: () => string
}

/** Each kind counts up to this many names separately. All further names share one count. */
const NAMES_MAX = 100
const OTHERS = 'others'
/** While the store cannot be written, the counts of this many hours are kept in memory. Older counts are dropped. */
const HOURS_MAX = 48

export function createTallies({ write, process, freeBytes, zone, clock }: TalliesPorts) {
  /** Counts by the beginning of the hour, then by kind and name. */
  let pending = new Map<number, Map<TallyAddition['kind'], Map<string, number>>>()
  /** The last flush that was sent. It is sent again unchanged until the store answers. By its number, the store adds its counts only once. */
  let flushed: TallyFlush = { by: process, number: 0, additions: [] }
  let hasFailed = false
  let before: Promise<void> = Promise.resolve()

  function namesOf(fromMs: number, kind: TallyAddition['kind']): Map<string, number> {
    const kinds = pending.get(fromMs) ?? new Map<TallyAddition['kind'], Map<string, number>>()
    pending.set(fromMs, kinds)
    const names = kinds.get(kind) ?? new Map<string, number>()
    kinds.set(kind, names)
    return names
  }

  function add(kind: TallyAddition['kind'], given: string, count: number, fromMs = spanStart('hour', clock.now())): void {
    const names = namesOf(fromMs, kind)
    const name = names.has(given) || names.size < NAMES_MAX ? given : OTHERS
    names.set(name, (names.get(name) ?? 0) + count)
  }

  /** Adds to the present day of the carrier's report. */
  const report = (name: string, count: number): void => add('report', name, count, dayIn(zone(), clock.now()))

  function noteFreeBytes(): void {
    const free = freeBytes()
    if (!Number.isFinite(free)) return
    const names = namesOf(spanStart('hour', clock.now()), 'disk')
    names.set('free', Math.min(free, names.get('free') ?? free))
  }

  const next = (): TallyFlush => ({
    by: process,
    number: flushed.number + 1,
    additions: [...pending].flatMap(([fromMs, kinds]) =>
      [...kinds].map(([kind, names]): TallyAddition => ({ fromMs, kind, counts: Object.fromEntries(names) })),
    ),
  })

  async function send(): Promise<void> {
    if (flushed.additions.length === 0) return
    try {
      await write.addTallies(flushed)
      flushed = { ...flushed, additions: [] }
      hasFailed = false
    } catch (error) {
      hasFailed = true
      throw error
    }
  }

  async function flushNow(): Promise<void> {
    noteFreeBytes()
    for (const fromMs of [...pending.keys()].toSorted((a, b) => b - a).slice(HOURS_MAX)) pending.delete(fromMs)
    await send()
    flushed = next()
    pending = new Map()
    await send()
  }

  return {
    /** Returns a meter that also adds each report to the tallies. */
    over: (meter: Meter): Meter => countingMeter(meter, add, report),
    callMade: (spender: CallSpender) => add('calls', spender, 1),
    polled: (end: QuestionEnd) => report(end, 1),
    /** Stores the counts since the last call. If the store fails, `flush` rejects and keeps the counts for the next call. */
    flush() {
      const turn = before.catch(() => undefined).then(flushNow)
      before = turn
      return turn
    },
    /** What the last call of `flush` could not store, as it is now, in the order in which it is stored; empty: nothing. */
    unflushed: (): readonly TallyFlush[] => (hasFailed ? [flushed, next()].filter(({ additions }) => additions.length > 0) : []),
  }
}

/** What pushes are called in the report that the relay did not take, by their outcome. */
const APART: ReadonlyMap<string, string> = new Map([
  ['signature_invalid', 'badSignature'],
  ['storage_unavailable', 'notTaken'],
  ['overloaded', 'notTaken'],
])

type Add = (kind: TallyKind, name: string, count: number) => void

function countingMeter(meter: Meter, add: Add, report: (name: string, count: number) => void): Meter {
  return {
    ...meter,
    pushReceived(outcome, keyIndex, count = 1) {
      add('pushes', outcome, count)
      const apart = APART.get(outcome)
      if (apart !== undefined) report(apart, count)
      meter.pushReceived(outcome, keyIndex, count)
    },
    pollEnded(outcome) {
      add('polls', outcome, 1)
      meter.pollEnded(outcome)
    },
    missedPush(latencyMs) {
      add('missed', latenessClass(latencyMs), 1)
      meter.missedPush(latencyMs)
    },
    served(result) {
      // Nearly every answer is a hit, and none of them is news.
      if (result !== 'hit') add('served', result, 1)
      meter.served(result)
    },
    deliveryAttempted(endpoint, outcome, durationMs) {
      const ended = outcome === 'accepted' ? 'accepted' : 'failed'
      add('attempts', ended, 1)
      add(`endpoint:${endpoint.id}`, ended, 1)
      meter.deliveryAttempted(endpoint, outcome, durationMs)
    },
  }
}
