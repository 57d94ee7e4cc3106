import { randomBytes } from 'node:crypto'
import { clampRetryAfterMs } from '../../domain/instant.ts'
import type { BudgetAnswer, BudgetLimits, CarrierMemory } from '../../domain/polling/call-budget.ts'
import type { CallPriority } from '../../domain/polling/carrier-answer.ts'
import type { Relay } from '../../flow/relay-part.ts'
import type { StartTimer } from '../../outbound/deadline.ts'
import type { BudgetStore, SharedCarrier } from '../../store/polling/shared-carrier.ts'
import type { QueueBudget, Waiting } from '../call/call-queue.ts'
import {
  type BudgetSaverPorts,
  type CallLimits,
  createBudgetSaver,
  createOwnBudget,
  createSavingLog,
  type SlotResult,
} from './own-budget.ts'

/** If a slot is not used within this time after it was requested, it is given back. Otherwise unused slots could add up to a burst. */
const USE_WITHIN_MS = 250
/** The store counts as failing if this many answers in a row come too late. */
const LATE_MAX = 3
/** Above this rate, in calls per second, one request asks for several slots, and requests are at least `ASK_EVERY_MS` apart. */
const MANY_A_SECOND = 50
const ASK_EVERY_MS = 20
/** When the day's calls are used up, the replica asks the shared row again after this time. */
const SPENT_LOOK_MS = 1000
/** A slot that no replica ends lapses this long after the time limit of its call. */
const END_MARGIN_MS = 2000
/** Ended calls are reported with the next request, at the latest after `END_WITHIN_MS`. A failed report is repeated after `END_AGAIN_MS`. */
const END_WITHIN_MS = 20
const END_AGAIN_MS = 1000
/** The database server's clock counts as set forward if, between two answers, it advances this much more than the replica's clock. */
const CLOCK_SLACK_MS = 2000

interface SharedBudgetOptions extends CallLimits, Pick<Relay, 'clock'> {
  readonly store: BudgetStore
  /** A name that is new at each start, and that no other replica has. */
  readonly replica: string
  readonly timeoutMs: number
  readonly startTimer: StartTimer
}

/**
 * Returns the limits for the shared row. No second has more calls than 1.5 times the rate (at a low rate: one call). A call may be made up to
 * `USE_WITHIN_MS` after its slot was due, so the calls of a longer time may fall into one second. The interval between slots allows for that.
 */
function sharedLimits({ ratePerSecond, callsPerDay, concurrency, timeoutMs }: Omit<SharedBudgetOptions, 'store'>): BudgetLimits {
  const burst = Math.max(1, Math.floor(ratePerSecond / 4))
  const inASecond = Math.max(1, Math.floor(1.5 * ratePerSecond))
  const intervalUs = Math.ceil(Math.max(1e6 / ratePerSecond, (1e3 * (1000 + USE_WITHIN_MS + 2)) / (inASecond - burst + 1)))
  const slotMs = USE_WITHIN_MS + timeoutMs + END_MARGIN_MS
  return { intervalUs, headStartUs: (burst - 1) * intervalUs, callsPerDay, concurrency, slotMs }
}

/** The reason why there are no more slots, and how long it holds. */
interface Verdict {
  readonly slot: Exclude<SlotResult, { kind: 'taken' | 'unwritten' | 'busy' }>
  readonly untilMs: number
  /** Whether the verdict also applies to calls for apps. It does not if the request asked for scheduled polls only. */
  readonly forApps: boolean
  /** Whether all slots are in use. If so, the next call of this replica that ends makes room. */
  readonly isBusy: boolean
}

/** Makes one replica's view of the budget, a row of the database that all replicas share (DOMAIN 6.4). Times are monotonic milliseconds. */
export function createSharedBudget(options: SharedBudgetOptions) {
  const { clock, concurrency } = options
  const limits = sharedLimits(options)
  const row = createBudgetRow(options, limits)
  let free: readonly { readonly name: string; readonly untilMs: number }[] = []
  /** The slots of calls in flight. The slot that lapses first is the first element. */
  let taken: readonly string[] = []
  let verdict: Verdict | null = null
  let late = 0

  function dropStale(nowMs: number): void {
    const stale = free.filter(({ untilMs }) => untilMs < nowMs)
    if (stale.length === 0) return
    free = free.filter(({ untilMs }) => untilMs >= nowMs)
    row.end(stale.map(({ name }) => name))
  }

  return {
    takeSlot(nowMs: number, _wallMs: number, priority: CallPriority): SlotResult {
      dropStale(nowMs)
      if (row.pausedUntilMs() > nowMs) return { kind: 'paused', untilMs: row.pausedUntilMs() }
      const [slot, ...others] = free
      if (slot !== undefined) {
        free = others
        taken = [...taken, slot.name]
        return { kind: 'taken' }
      }
      if (verdict === null || verdict.untilMs <= nowMs || (priority === 'app' && !verdict.forApps)) return { kind: 'unwritten' }
      return verdict.slot
    },
    release() {
      // Any slot can stand for any call. End the slot that lapses first, so that the remaining slots last as long as the remaining calls.
      const [first, ...others] = taken
      if (first === undefined) return
      taken = others
      if (verdict?.isBusy === true) verdict = null
      row.end([first])
    },
    pauseUntil: row.pauseUntil,
    earliestMs: (nowMs: number, ahead: number) =>
      Math.max(nowMs, row.pausedUntilMs(), row.nextMs()) + (Math.max(0, ahead - free.length) * limits.intervalUs) / 1000,
    /** Asks the shared row for slots for the waiting calls. False: the answers come too late to be used. Rejects if the store fails. */
    async reserve(waiting: Waiting) {
      const apps = Math.min(waiting.apps, concurrency)
      const { wanted, answer, sentMs } = await row.ask({ apps, schedule: Math.min(waiting.schedule, concurrency - apps) })
      const granted = wanted.slice(0, answer.granted).map((name) => ({ name, untilMs: sentMs + USE_WITHIN_MS }))
      free = [...free, ...granted]
      verdict = judge(answer, { apps, nowMs: clock.monotonic(), ratePerSecond: options.ratePerSecond })
      dropStale(clock.monotonic())
      late = granted.length > 0 && free.length === 0 ? late + 1 : 0
      if (late < LATE_MAX) return true
      late = 0
      return false
    },
    /** Reports pauses and ended calls to the shared row, and reads how many calls all replicas made today. */
    async settle() {
      await row.ask({ apps: 0, schedule: 0 })
    },
    /** Whether this replica has no slots, and has reported all ended calls and pauses to the shared row. */
    isSettled: () => free.length === 0 && taken.length === 0 && row.isSettled(),
    inFlight: () => taken.length,
    callsToday: row.callsToday,
  }
}

function judge(
  answer: BudgetAnswer,
  asked: { readonly apps: number; readonly nowMs: number; readonly ratePerSecond: number },
): Verdict | null {
  const { hold, retryMs, dayLeftMs } = answer
  const { nowMs } = asked
  if (hold === null) return null
  if (hold === 'spent') {
    const untilMs = nowMs + Math.min(SPENT_LOOK_MS, dayLeftMs)
    return { slot: { kind: 'spent', retryAfterMs: clampRetryAfterMs(dayLeftMs) }, untilMs, forApps: true, isBusy: false }
  }
  const untilMs = nowMs + (hold === 'wait' && asked.ratePerSecond > MANY_A_SECOND ? Math.max(ASK_EVERY_MS, retryMs) : retryMs)
  return { slot: { kind: hold === 'paused' ? 'paused' : 'wait', untilMs }, untilMs, forApps: asked.apps > 0, isBusy: hold === 'busy' }
}

interface Asked {
  /** The names of the slots in the request. The first `answer.granted` of them are granted. */
  readonly wanted: readonly string[]
  readonly answer: BudgetAnswer
  readonly sentMs: number
}

function createBudgetRow({ store, replica, clock, startTimer }: SharedBudgetOptions, limits: BudgetLimits) {
  let count = 0
  let ended: readonly string[] = []
  let pause = { untilMs: Number.NEGATIVE_INFINITY, isSaved: true }
  let nextMs = Number.NEGATIVE_INFINITY
  let lastAnswer: { readonly atMs: number; readonly sentMs: number } | null = null
  let today = { calls: 0, untilMs: Number.NEGATIVE_INFINITY }
  let isEnding = false

  async function ask({ apps, schedule }: Waiting): Promise<Asked> {
    const sentMs = clock.monotonic()
    const wanted = Array.from({ length: apps + schedule }, () => `${replica}-${(count++).toString(36)}`)
    const settling = ended
    const pausing = pause
    ended = []
    const pauseMs = pause.isSaved ? 0 : Math.max(0, Math.ceil(pause.untilMs - sentMs))
    const atMostMs = lastAnswer === null ? null : Math.ceil(lastAnswer.atMs + sentMs - lastAnswer.sentMs + CLOCK_SLACK_MS)
    try {
      const answer = await store.settle({ caller: replica, names: wanted, apps, schedule, ended: settling, pauseMs, atMostMs }, limits)
      if (pause === pausing) pause = { ...pause, isSaved: true }
      const nowMs = clock.monotonic()
      lastAnswer = { atMs: answer.atMs, sentMs }
      nextMs = nowMs + answer.nextMs
      today = { calls: answer.callsToday, untilMs: nowMs + answer.dayLeftMs }
      return { wanted, answer, sentMs }
    } catch (error) {
      // The store may have granted the slots before it failed, so give them back.
      ended = [...ended, ...settling, ...wanted]
      throw error
    }
  }

  function endSoon(delayMs: number): void {
    if (isEnding) return
    isEnding = true
    startTimer(delayMs, () => {
      isEnding = false
      if (ended.length > 0) ask({ apps: 0, schedule: 0 }).catch(() => endSoon(END_AGAIN_MS))
    })
  }

  return {
    ask,
    /** Ends these slots with the next request. If no request follows soon, sends one. */
    end(names: readonly string[]): void {
      ended = [...ended, ...names]
      endSoon(END_WITHIN_MS)
    },
    pauseUntil(untilMs: number): void {
      if (untilMs > pause.untilMs) pause = { untilMs, isSaved: false }
    },
    isSettled: () => ended.length === 0 && pause.isSaved,
    pausedUntilMs: () => pause.untilMs,
    nextMs: () => nextMs,
    callsToday: () => (today.untilMs > clock.monotonic() ? today.calls : 0),
  }
}

/** The budget for calls to the carrier. This process either has it alone, or shares it with other replicas through a row in the store. */
export interface CarrierBudget {
  readonly slots: QueueBudget
  inFlight(): number
  callsToday(): number
  /** Reserves calls in the store for the waiting callers. False: the store failed or answers too late, so no call can be made now. */
  reserve(waiting: Waiting): Promise<boolean>
  /** Saves the current state. False: the store failed. */
  keep(): Promise<boolean>
  /** Saves the state for the last time, when no more calls are made. */
  close(): Promise<boolean>
}

interface BudgetOptions extends CallLimits, Omit<BudgetSaverPorts, 'budget'> {
  readonly timeoutMs: number
  readonly startTimer: StartTimer
}

/** Opens the budget. `pausedForMs`: the rest of a pause that began in the last run. `shared` undefined: no other replica calls the carrier. */
export function openBudget(
  options: BudgetOptions,
  shared: SharedCarrier | undefined,
  memory: CarrierMemory | null,
  pausedForMs: number,
): CarrierBudget {
  return shared === undefined ? openOwnBudget(options, memory, pausedForMs) : openSharedBudget(options, shared)
}

function openOwnBudget(options: BudgetOptions, memory: CarrierMemory | null, pausedForMs: number): CarrierBudget {
  const { clock } = options
  const endedMs = clock.monotonic()
  const earlier = memory === null ? null : { ...memory, pausedUntilMs: endedMs + pausedForMs, endedMs }
  const budget = createOwnBudget({ ...options, earlier })
  const saver = createBudgetSaver({ ...options, budget })
  return {
    slots: budget,
    inFlight: budget.inFlight,
    callsToday: () => budget.callsToday(clock.now()),
    reserve: saver.keep,
    keep: saver.keep,
    close: saver.close,
  }
}

function openSharedBudget(options: BudgetOptions, shared: SharedCarrier): CarrierBudget {
  const { log, clock, asking, remember } = options
  const calls = createSharedBudget({ ...options, store: shared.budget, replica: randomBytes(5).toString('base64url') })
  const logSaving = createSavingLog(log)
  const guard = async (work: () => Promise<boolean>, isLast = false): Promise<boolean> => {
    const failure = await work().then(
      (done) => (done ? null : { code: 'TOO_LATE' }),
      (err: unknown) => ({ err }),
    )
    return logSaving(failure, isLast)
  }
  const keep = (isLast = false) =>
    guard(async () => {
      await calls.settle()
      // Save the time too, because the poller of the next run must know until when this run was alive.
      await remember?.({
        atMs: clock.now(),
        askedAtMs: asking.lastMs(),
        days: [],
        pausedUntilMs: null,
        tokenPausedUntilMs: null,
        refusal: null,
      })
      return true
    }, isLast)
  return {
    ...calls,
    slots: calls,
    reserve: (waiting) => guard(() => calls.reserve(waiting)),
    keep,
    close: () => keep(true),
  }
}
