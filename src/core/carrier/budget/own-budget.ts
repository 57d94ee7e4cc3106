import { systemCode } from '../../domain/errors.ts'
import { clampRetryAfterMs } from '../../domain/instant.ts'
import {
  type BudgetLimits,
  type BudgetRow,
  type CarrierMemory,
  type CredentialRefusal,
  callsToday,
  type DayCalls,
  dayOf,
  daysOf,
  listDays,
  settleBudget,
  turnDay,
  UNUSED_BUDGET,
} from '../../domain/polling/call-budget.ts'
import { systemReason } from '../../domain/system-reason.ts'
import type { Log } from '../../flow/ports.ts'
import type { Relay } from '../../flow/relay-part.ts'
import type { AskingClock } from '../call/carrier-time.ts'

/**
 * How many calls the store counts before they are made. With 10,000 calls a day, at most 10; with 1,000,000, at most 64. If the process is
 * killed before it makes these calls, they stay counted, so the day has fewer calls.
 */
const AHEAD_MAX = 64
const AHEAD_PART = 1 / 1000

export interface CallLimits {
  readonly ratePerSecond: number
  /** Per UTC day. */
  readonly callsPerDay: number
  readonly concurrency: number
}

export interface OwnBudgetOptions extends CallLimits {
  /** Null: there was no earlier run. */
  readonly earlier?: EarlierCalls | null
}

/** The calls that an earlier run saved. */
export interface EarlierCalls {
  readonly days: readonly DayCalls[]
  /** When the earlier run saved them, epoch milliseconds. */
  readonly atMs: number
  /** The end of a pause that the carrier asked for, monotonic milliseconds. */
  readonly pausedUntilMs: number
  /** The start of this run, monotonic milliseconds. The earlier run may have made calls until this time. */
  readonly endedMs: number
}

/** Whether a call may be made now. Times are monotonic milliseconds. */
export type SlotResult =
  | { readonly kind: 'taken' }
  | { readonly kind: 'wait'; readonly untilMs: number }
  | { readonly kind: 'paused'; readonly untilMs: number }
  /** As many calls are in flight as `concurrency` allows. */
  | { readonly kind: 'busy' }
  /** The rate allows the call, but the store does not count it yet. First save the days that `toWriteDown` returns. */
  | { readonly kind: 'unwritten' }
  | { readonly kind: 'spent'; readonly retryAfterMs: number }

/**
 * The budget of a process that calls the carrier alone (DOMAIN 6.4). The caller passes the time: `nowMs` is monotonic, `wallMs` epoch milliseconds.
 */
export type OwnBudget = ReturnType<typeof createOwnBudget>

/** A burst may have as many calls as the rate allows in half a second. So no second has more calls than 1.5 times the rate. */
function ownLimits({ ratePerSecond, callsPerDay, concurrency }: OwnBudgetOptions): BudgetLimits {
  // If 1.5 times the rate is less than two calls, only one call may arrive in any second. Calls that are made 1,000 ms apart may arrive closer
  // together, so the interval is at least 1,020 ms.
  const intervalUs = Math.max(1e6 / ratePerSecond, ratePerSecond * 1.5 < 2 ? 1_020_000 : 0)
  const headStartUs = (Math.max(1, Math.floor(ratePerSecond / 2)) - 1) * intervalUs
  return { intervalUs, headStartUs, callsPerDay, concurrency, slotMs: Number.POSITIVE_INFINITY }
}

/**
 * Creates the budget. Rate and pauses use monotonic time, so that a corrected wall clock causes neither a stall nor a burst. Only the day uses the
 * wall clock (UTC).
 *
 * A call is made only after the store counts it. So a killed process has never made more calls than the store counts.
 */
export function createOwnBudget(options: OwnBudgetOptions) {
  const { callsPerDay, earlier = null } = options
  const limits = ownLimits(options)
  const { intervalUs, headStartUs } = limits
  const aheadMost = Math.min(AHEAD_MAX, Math.max(1, Math.floor(callsPerDay * AHEAD_PART)))
  const NEVER = Number.NEGATIVE_INFINITY
  let row: BudgetRow = {
    ...UNUSED_BUDGET,
    seenMs: NEVER,
    // The earlier run may have used its whole burst just before it ended.
    dueUs: earlier === null ? NEVER : earlier.endedMs * 1000 + headStartUs + intervalUs,
    pausedUntilMs: earlier?.pausedUntilMs ?? NEVER,
    lastDay: dayOf(earlier?.atMs ?? NEVER),
    days: daysOf(earlier?.days ?? []),
  }
  let written: BudgetRow['days'] = {}
  let names = 0

  return {
    /** Takes a slot if one is free now. A taken slot must be released. */
    takeSlot(nowMs: number, wallMs: number): SlotResult {
      row = turnDay(row, wallMs)
      const request = { caller: 'own', names: [`${names}`], apps: 1, schedule: 0, ended: [], pauseMs: 0, atMostMs: null }
      const { row: next, answer } = settleBudget(row, { nowMs, wallMs }, request, limits)
      const { hold } = answer
      if (hold === 'spent') return { kind: 'spent', retryAfterMs: clampRetryAfterMs(answer.dayLeftMs) }
      if (hold === 'paused') return { kind: 'paused', untilMs: row.pausedUntilMs }
      if (hold === 'busy') return { kind: 'busy' }
      if (hold !== null) return { kind: 'wait', untilMs: nowMs + answer.retryMs }
      const today = dayOf(wallMs)
      if ((row.days[today] ?? 0) >= (written[today] ?? 0)) return { kind: 'unwritten' }
      row = next
      names += 1
      return { kind: 'taken' }
    },
    release() {
      const [, ...others] = Object.entries(row.slots)
      row = { ...row, slots: Object.fromEntries(others) }
    },
    /** Allows no call before `untilMs`. A longer pause that was set earlier stays. */
    pauseUntil(untilMs: number) {
      row = { ...row, pausedUntilMs: Math.max(row.pausedUntilMs, untilMs) }
    },
    pausedUntilMs: () => row.pausedUntilMs,
    /** The earliest time at which rate and pause allow a call, if `ahead` other calls go first. */
    earliestMs: (nowMs: number, ahead: number) =>
      Math.max(nowMs, row.pausedUntilMs, Math.max(nowMs, row.dueUs / 1000) + (ahead * intervalUs - headStartUs) / 1000),
    inFlight: () => Object.keys(row.slots).length,
    callsToday: (wallMs: number) => callsToday(row, wallMs),
    /** Returns the calls to save: the calls that were made and, with `ahead`, some more that may be made today. */
    toWriteDown(wallMs: number, ahead: boolean): readonly DayCalls[] {
      row = turnDay(row, wallMs)
      if (!ahead) return listDays(row.days)
      const today = dayOf(wallMs)
      const more = Math.max(0, Math.min(aheadMost, callsPerDay - callsToday(row, wallMs)))
      const counts = { ...written, ...row.days, [today]: (row.days[today] ?? 0) + more }
      // Calls that the store already counts may be made while this is saved. So no stored count may become lower.
      return listDays(counts).map(({ day, calls }) => ({ day, calls: Math.max(calls, written[day] ?? 0) }))
    },
    /** Notes that these days are saved, so that their calls may be made. */
    writtenDown(saved: readonly DayCalls[]) {
      written = daysOf(saved)
    },
  }
}

/** While it cannot save, the relay makes the calls that it has saved ahead of need, such as those of a check. */
const NOT_SAVED = 'the relay cannot save how many calls it makes to the carrier: it makes those that it has saved in advance, and then none'
/** No call is lost by that, and none is made too many. */
const NOT_SAVED_AT_LAST =
  'the relay could not save how many calls it has made to the carrier before it stopped: those that it had saved in advance count as made'

/** Logs when saving the number of calls begins to fail, and when it works again. Returns whether it worked. `isLast`: the relay stops. */
export function createSavingLog(log: Pick<Log, 'error' | 'info'>): (failure: object | null, isLast: boolean) => boolean {
  let isWell = true
  return (failure, isLast) => {
    if (failure !== null && isWell && isLast) log.info(failure, NOT_SAVED_AT_LAST)
    if (failure !== null && isWell && !isLast) log.error(failure, NOT_SAVED)
    if (failure === null && !isWell) log.info({}, 'the relay can save the number of its calls to the carrier again')
    isWell = failure === null
    return isWell
  }
}

export interface BudgetSaverPorts extends Pick<Relay, 'clock' | 'log'> {
  readonly budget: OwnBudget
  readonly tokens: () => {
    /** The end of the pause that the token endpoint asked for, monotonic milliseconds. */
    pausedUntilMs(): number
    refusal(): CredentialRefusal | null
  }
  readonly remember: ((memory: CarrierMemory) => Promise<void>) | undefined
  readonly asking: Pick<AskingClock, 'lastMs'>
}

/** Saves the number of calls, the pauses and the refused credentials for the next run. A call is made only after it is counted in the store. */
export function createBudgetSaver({ budget, tokens, remember, clock, asking, log }: BudgetSaverPorts) {
  let isClosed = false
  const logSaving = createSavingLog(log)

  const wallOf = (untilMs: number): number | null => {
    const leftMs = untilMs - clock.monotonic()
    return leftMs > 0 ? Math.round(clock.now() + leftMs) : null
  }
  const write = createSharedWrite(async () => {
    const atMs = clock.now()
    const days = budget.toWriteDown(atMs, !isClosed)
    const pauses = { pausedUntilMs: wallOf(budget.pausedUntilMs()), tokenPausedUntilMs: wallOf(tokens().pausedUntilMs()) }
    await remember?.({ atMs, askedAtMs: asking.lastMs(), days, ...pauses, refusal: tokens().refusal() })
    budget.writtenDown(days)
  })
  /** The saved number of calls includes some that may be made later. Resolves with false if the store failed. */
  const keep = async (): Promise<boolean> => {
    const failure = await write().then(
      () => null,
      (error: unknown) => ({ because: systemReason(error), code: systemCode(error) ?? 'UNKNOWN' }),
    )
    return logSaving(failure, isClosed)
  }

  return {
    keep,
    /** Saves for the last time. The saved number includes only calls that were made, because this run makes no more. */
    close() {
      isClosed = true
      return keep()
    },
  }
}

/**
 * Returns how much remains of a wait until `untilMs` (epoch milliseconds; null: no wait), which an earlier run saved at `atMs`. This is never
 * more than what remained at `atMs`, even if the clock was set back.
 */
export function remainingWaitMs(untilMs: number | null, atMs: number, nowMs: number): number {
  return untilMs === null ? 0 : Math.max(0, Math.min(untilMs - atMs, untilMs - nowMs))
}

/**
 * Runs one write at a time. All callers during a write share the next write, because the running write may not contain their changes. So
 * each caller gets the outcome of a write that contains its change.
 */
function createSharedWrite(write: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null
  let next: Promise<void> | null = null

  function start(): Promise<void> {
    next = null
    const begun = write().finally(() => {
      if (running === begun) running = null
    })
    running = begun
    return begun
  }

  return () => {
    if (running === null) return start()
    next ??= running.then(start, start)
    return next
  }
}
