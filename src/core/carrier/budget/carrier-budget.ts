import { randomBytes } from 'node:crypto'
import type { CarrierMemory } from '../../domain/polling/call-budget.ts'
import type { StartTimer } from '../../outbound/deadline.ts'
import type { SharedCarrier } from '../../store/polling/shared-carrier.ts'
import type { QueueBudget, Waiting } from '../call/call-queue.ts'
import { type BudgetSaverPorts, type CallLimits, createBudgetSaver, createOwnBudget, NOT_SAVED } from './own-budget.ts'
import { createSharedBudget } from './shared-budget.ts'

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
  let isWell = true
  const guard = async (work: () => Promise<boolean>): Promise<boolean> => {
    const failure = await work().then(
      (done) => (done ? null : { code: 'TOO_LATE' }),
      (err: unknown) => ({ err }),
    )
    if (failure !== null && isWell) log.error(failure, NOT_SAVED)
    if (failure === null && !isWell) log.info({}, 'the relay can save the number of its calls to the carrier again')
    isWell = failure === null
    return isWell
  }
  const keep = () =>
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
    })
  return {
    ...calls,
    slots: calls,
    reserve: (waiting) => guard(() => calls.reserve(waiting)),
    keep,
    close: keep,
  }
}
