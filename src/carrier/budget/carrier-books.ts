import { randomBytes } from 'node:crypto'
import type { CarrierMemory } from '../../domain/polling/carrier-memory.ts'
import type { SharedCarrier } from '../../flow/polling/ports.ts'
import type { Clock, Log } from '../../flow/ports.ts'
import type { StartTimer } from '../../outbound/deadline.ts'
import type { QueueBudget, Waiting } from '../call/call-queue.ts'
import { createCallBudget } from './call-budget.ts'
import { type CarrierLedgerPorts, createCarrierLedger } from './carrier-ledger.ts'
import { createSharedCalls } from './shared-budget.ts'

/** The budget, and how it is saved: by this process alone, or in a row that replicas share. */
export interface CarrierBooks {
  readonly budget: QueueBudget
  inFlight(): number
  callsToday(): number
  /** Gets calls for those who wait; false: none can be made now. */
  reserve(waiting: Waiting): Promise<boolean>
  /** Saves the current state; false: that is impossible now. */
  keep(): Promise<boolean>
  /** Saves the state when no call is made any more. */
  close(): Promise<boolean>
}

interface BooksOptions {
  readonly ratePerSecond: number
  readonly callsPerDay: number
  readonly concurrency: number
  readonly timeoutMs: number
  readonly clock: Clock
  readonly log: Log
  readonly startTimer: StartTimer
  readonly tokens: CarrierLedgerPorts['tokens']
  readonly remember: CarrierLedgerPorts['remember']
  readonly asking: CarrierLedgerPorts['asking']
}

/** `pausedForMs`: how long a pause of the last run still lasts. Without `shared`, this process calls the carrier alone. */
export function openBooks(
  options: BooksOptions,
  shared: SharedCarrier | undefined,
  memory: CarrierMemory | null,
  pausedForMs: number,
): CarrierBooks {
  return shared === undefined ? openOwnBooks(options, memory, pausedForMs) : openSharedBooks(options, shared)
}

function openOwnBooks(options: BooksOptions, memory: CarrierMemory | null, pausedForMs: number): CarrierBooks {
  const { clock } = options
  const endedMs = clock.monotonic()
  const earlier = memory === null ? null : { ...memory, pausedUntilMs: endedMs + pausedForMs, endedMs }
  const budget = createCallBudget({ ...options, earlier })
  const ledger = createCarrierLedger({ ...options, budget })
  return {
    budget,
    inFlight: budget.inFlight,
    callsToday: () => budget.callsToday(clock.now()),
    reserve: ledger.keep,
    keep: ledger.keep,
    close: ledger.close,
  }
}

function openSharedBooks(options: BooksOptions, shared: SharedCarrier): CarrierBooks {
  const { log, clock, asking, remember } = options
  const calls = createSharedCalls({ ...options, budget: shared.budget, replica: randomBytes(5).toString('base64url') })
  let isWell = true
  const guard = async (work: () => Promise<boolean>): Promise<boolean> => {
    const failure = await work().then(
      (done) => (done ? null : { code: 'TOO_LATE' }),
      (err: unknown) => ({ err }),
    )
    if (failure !== null && isWell) log.error(failure, 'calls to the carrier cannot be written down: none is made until they can')
    if (failure === null && !isWell) log.info({}, 'calls to the carrier can be written down again')
    isWell = failure === null
    return isWell
  }
  const keep = () =>
    guard(async () => {
      await calls.settle()
      // For the schedule, which compares the time of the last run with its own.
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
    budget: calls,
    reserve: (waiting) => guard(() => calls.reserve(waiting)),
    keep,
    close: keep,
  }
}
