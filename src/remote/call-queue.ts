import { clampRetryAfterMs } from '../domain/retry-after.ts'
import type { CallPriority, Clock } from '../flow/ports.ts'
import type { CallBudget } from './call-budget.ts'
import type { StartTimer } from './deadline.ts'

export interface Permit {
  readonly kind: 'granted'
  /** Frees the slot; more than once changes nothing. */
  release(): void
}

export interface Refusal {
  readonly kind: 'refused'
  readonly reason: 'budget' | 'rate_limited'
  readonly retryAfterMs: number
}

export interface TakeRequest {
  readonly priority: CallPriority
  /** Monotonic: a wait known to last beyond it is refused at once. `null`: any wait for the rate is fine, a long pause is not. */
  readonly giveUpAtMs: number | null
  readonly signal: AbortSignal
}

export interface CallQueue {
  take(request: TakeRequest): Promise<Permit | Refusal>
  /** Lets nothing leave for a while, whoever asks. */
  pause(waitMs: number): void
  waiting(): number
}

export interface CallQueueOptions {
  readonly budget: CallBudget
  readonly clock: Clock
  readonly startTimer: StartTimer
  /** Who would rather wait for the rate than be refused still does not sit through a pause longer than this. */
  readonly pausePatienceMs: number
  /** Per priority. */
  readonly waitingMax: number
}

interface Waiter {
  readonly giveUpAtMs: number | null
  readonly settle: (outcome: Permit | Refusal) => void
}

/** The waiting room in front of the budget: apps before the schedule, first come first served within each. */
export function createCallQueue({ budget, clock, startTimer, pausePatienceMs, waitingMax }: CallQueueOptions): CallQueue {
  const rooms = { app: new Set<Waiter>(), schedule: new Set<Waiter>() }
  let cancelTimer: (() => void) | null = null

  const everybody = (): readonly Waiter[] => [...rooms.app, ...rooms.schedule]
  const leave = (waiter: Waiter, outcome: Permit | Refusal): void => {
    if (rooms.app.delete(waiter) || rooms.schedule.delete(waiter)) waiter.settle(outcome)
  }
  const permit = (): Permit => {
    let held = true
    return {
      kind: 'granted',
      release() {
        if (!held) return
        held = false
        budget.release()
        admit()
      },
    }
  }
  const refuseImpatient = (untilMs: number, nowMs: number): void => {
    for (const waiter of everybody()) {
      if (untilMs <= (waiter.giveUpAtMs ?? nowMs + pausePatienceMs)) continue
      leave(waiter, { kind: 'refused', reason: 'rate_limited', retryAfterMs: clampRetryAfterMs(untilMs - nowMs) })
    }
  }

  /** Lets in whom the budget lets in, then sleeps until it may let in the next. Busy needs no timer: a release comes back here. */
  function admit(): void {
    cancelTimer?.()
    cancelTimer = null
    for (;;) {
      const next = rooms.app.values().next().value ?? rooms.schedule.values().next().value
      if (next === undefined) return
      const nowMs = clock.monotonic()
      const take = budget.takeSlot(nowMs, clock.now())
      if (take.kind === 'taken') {
        leave(next, permit())
        continue
      }
      if (take.kind === 'spent') {
        for (const waiter of everybody()) leave(waiter, { kind: 'refused', reason: 'budget', retryAfterMs: take.retryAfterMs })
        return
      }
      if (take.kind === 'paused') refuseImpatient(take.untilMs, nowMs)
      if (take.kind !== 'busy' && rooms.app.size + rooms.schedule.size > 0) {
        cancelTimer = startTimer(Math.max(1, Math.ceil(take.untilMs - nowMs)), admit)
      }
      return
    }
  }

  return {
    take({ priority, giveUpAtMs, signal }) {
      const room = rooms[priority]
      const nowMs = clock.monotonic()
      const ahead = rooms.app.size + (priority === 'app' ? 0 : rooms.schedule.size)
      const outOfBudget = (): Refusal => ({
        kind: 'refused',
        reason: 'budget',
        retryAfterMs: clampRetryAfterMs(budget.earliestMs(nowMs, ahead) - nowMs),
      })
      if (signal.aborted || room.size >= waitingMax) return Promise.resolve(outOfBudget())
      return new Promise((resolve) => {
        const onAbort = (): void => leave(waiter, outOfBudget())
        const waiter: Waiter = {
          giveUpAtMs,
          settle(outcome) {
            signal.removeEventListener('abort', onAbort)
            resolve(outcome)
          },
        }
        signal.addEventListener('abort', onAbort, { once: true })
        room.add(waiter)
        admit()
        // After the admission, which knows better why it has to wait when the carrier asked for a pause.
        if (giveUpAtMs !== null && room.has(waiter) && budget.earliestMs(nowMs, ahead) > giveUpAtMs) leave(waiter, outOfBudget())
      })
    },
    pause(waitMs) {
      budget.pauseUntil(clock.monotonic() + waitMs)
      admit()
    },
    waiting: () => rooms.app.size + rooms.schedule.size,
  }
}
