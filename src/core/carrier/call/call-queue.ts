import { clampRetryAfterMs } from '../../domain/instant.ts'
import type { CallPriority } from '../../domain/polling/carrier-answer.ts'
import type { Relay } from '../../flow/relay-part.ts'
import type { StartTimer } from '../../outbound/deadline.ts'
import type { OwnBudget, SlotResult } from '../budget/own-budget.ts'

export interface Permit {
  readonly kind: 'granted'
  /** Frees the slot. Calling it again changes nothing. */
  release(): void
}

export interface Refusal {
  readonly kind: 'refused'
  readonly reason: 'budget' | 'rate_limited'
  readonly retryAfterMs: number
}

export interface TakeRequest {
  readonly priority: CallPriority
  /**
   * A call that cannot be made before this time (monotonic milliseconds) is refused at once. Null: the caller waits as long as the rate requires, but
   * not for a pause longer than `pausePatienceMs`.
   */
  readonly giveUpAtMs: number | null
  readonly signal: AbortSignal
}

export type CallQueue = ReturnType<typeof createCallQueue>

export interface Waiting {
  readonly apps: number
  readonly schedule: number
}

export interface QueueBudget extends Pick<OwnBudget, 'release' | 'pauseUntil' | 'earliestMs'> {
  /** Takes a slot for a call of this priority if one is free now. */
  takeSlot(nowMs: number, wallMs: number, priority: CallPriority): SlotResult
}

export interface CallQueueOptions extends Pick<Relay, 'clock'> {
  readonly budget: QueueBudget
  readonly startTimer: StartTimer
  /** A caller without `giveUpAtMs` waits for a pause of at most this length. */
  readonly pausePatienceMs: number
  /** How many calls of each priority may wait. */
  readonly waitingMax: number
  /** Reserves more of the day's calls in the store for the waiting callers. False: the store failed, so no call may be made. */
  readonly writeDown: (waiting: Waiting) => Promise<boolean>
}

/** The `retryAfterMs` of calls that are refused because they could not be reserved in the store. */
const UNWRITABLE_RETRY_MS = 5000

interface Waiter {
  readonly giveUpAtMs: number | null
  readonly settle: (outcome: Permit | Refusal) => void
}

/**
 * Creates the queue. Calls for apps go first, then those for watchdogs, then scheduled polls; but of watchdogs and schedule in turn, so that a hundred
 * thousand silent parcels do not end the schedule for a day. Within a priority, calls go in the order of arrival.
 */
export function createCallQueue(options: CallQueueOptions) {
  const { budget, clock, startTimer, pausePatienceMs, waitingMax } = options
  /** By priority, the highest first. */
  const rooms = { app: new Set<Waiter>(), watchdog: new Set<Waiter>(), schedule: new Set<Waiter>() }
  const waitingButApps = (): number => rooms.watchdog.size + rooms.schedule.size
  let cancelTimer: (() => void) | null = null
  let isWriting = false
  let wasForWatchdog = false

  const everybody = (): readonly Waiter[] => [...rooms.app, ...rooms.watchdog, ...rooms.schedule]
  const leave = (waiter: Waiter, outcome: Permit | Refusal): void => {
    if (Object.values(rooms).some((room) => room.delete(waiter))) waiter.settle(outcome)
  }
  const releaseSlot = (): void => {
    budget.release()
    admit()
  }
  const refuseImpatient = (untilMs: number, nowMs: number): void => {
    for (const waiter of everybody()) {
      if (untilMs <= (waiter.giveUpAtMs ?? nowMs + pausePatienceMs)) continue
      leave(waiter, { kind: 'refused', reason: 'rate_limited', retryAfterMs: clampRetryAfterMs(untilMs - nowMs) })
    }
  }

  const refuseAll = (retryAfterMs: number): void => {
    for (const waiter of everybody()) leave(waiter, { kind: 'refused', reason: 'budget', retryAfterMs })
  }
  const writeDown = async (): Promise<void> => {
    if (isWriting) return
    isWriting = true
    const isWritten = await options.writeDown({ apps: rooms.app.size, schedule: waitingButApps() })
    isWriting = false
    if (isWritten) admit()
    else refuseAll(UNWRITABLE_RETRY_MS)
  }

  /** Grants calls while the budget allows them, then sets a timer for the next call. */
  function admit(): void {
    cancelTimer?.()
    cancelTimer = null
    for (;;) {
      const [[app], [watchdog], [poll]] = [rooms.app, rooms.watchdog, rooms.schedule]
      const next = app ?? (wasForWatchdog ? (poll ?? watchdog) : (watchdog ?? poll))
      if (next === undefined) return
      const nowMs = clock.monotonic()
      const take = budget.takeSlot(nowMs, clock.now(), rooms.app.size > 0 ? 'app' : 'schedule')
      if (take.kind === 'taken') {
        if (next !== app) wasForWatchdog = next === watchdog
        leave(next, permitOf(releaseSlot))
        continue
      }
      if (take.kind === 'spent') refuseAll(take.retryAfterMs)
      if (take.kind === 'unwritten') void writeDown()
      if (take.kind === 'paused') refuseImpatient(take.untilMs, nowMs)
      if ('untilMs' in take && rooms.app.size + waitingButApps() > 0) {
        cancelTimer = startTimer(Math.max(1, Math.ceil(take.untilMs - nowMs)), admit)
      }
      return
    }
  }

  function take({ priority, giveUpAtMs, signal }: TakeRequest): Promise<Permit | Refusal> {
    const room = rooms[priority]
    const nowMs = clock.monotonic()
    const ahead = rooms.app.size + (priority === 'app' ? 0 : rooms.watchdog.size) + (priority === 'schedule' ? rooms.schedule.size : 0)
    const outOfBudget = () => outOfBudgetFor(budget.earliestMs(nowMs, ahead) - nowMs)
    if (signal.aborted || room.size >= waitingMax) return Promise.resolve(outOfBudget())
    return new Promise((resolve) => {
      const waiter = createWaiter(giveUpAtMs, signal, resolve, () => leave(waiter, outOfBudget()))
      room.add(waiter)
      admit()
      // Check this after `admit`: if the carrier asked for a pause, `admit` refuses the call with the more exact reason `rate_limited`.
      if (giveUpAtMs !== null && room.has(waiter) && budget.earliestMs(nowMs, ahead) > giveUpAtMs) leave(waiter, outOfBudget())
    })
  }

  return {
    take,
    pause(waitMs: number) {
      budget.pauseUntil(clock.monotonic() + waitMs)
      admit()
    },
    waiting: () => rooms.app.size + waitingButApps(),
  }
}

function outOfBudgetFor(waitMs: number): Refusal {
  return { kind: 'refused', reason: 'budget', retryAfterMs: clampRetryAfterMs(waitMs) }
}

function permitOf(releaseSlot: () => void): Permit {
  let held = true
  return {
    kind: 'granted',
    release() {
      if (!held) return
      held = false
      releaseSlot()
    },
  }
}

function createWaiter(giveUpAtMs: number | null, signal: AbortSignal, resolve: Waiter['settle'], onAbort: () => void): Waiter {
  signal.addEventListener('abort', onAbort, { once: true })
  return {
    giveUpAtMs,
    settle(outcome) {
      signal.removeEventListener('abort', onAbort)
      resolve(outcome)
    },
  }
}
