import { systemCode } from '../../domain/errors.ts'
import type { CarrierMemory, CredentialRefusal } from '../../domain/polling/carrier-memory.ts'
import { systemReason } from '../../domain/system-reason.ts'
import type { Relay } from '../../flow/relay.ts'
import { createSharedWrite } from '../../outbound/shared-write.ts'
import type { AskingClock } from '../call/asking-clock.ts'
import type { OwnBudget } from './own-budget.ts'

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
export interface BudgetSaver {
  /** The saved number of calls includes some that may be made later. Resolves with false if the store failed. */
  keep(): Promise<boolean>
  /** Saves for the last time. The saved number includes only calls that were made, because this run makes no more. */
  close(): Promise<boolean>
}

export function createBudgetSaver({ budget, tokens, remember, clock, asking, log }: BudgetSaverPorts): BudgetSaver {
  let isClosed = false
  let isWell = true

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
  const keep = async (): Promise<boolean> => {
    const failure = await write().then(
      () => null,
      (error: unknown) => ({ because: systemReason(error), code: systemCode(error) ?? 'UNKNOWN' }),
    )
    if (failure !== null && isWell) log.error(failure, 'the relay makes no calls to the carrier, because it cannot save how many it makes')
    if (failure === null && !isWell) log.info({}, 'the relay can save the number of its calls to the carrier again')
    isWell = failure === null
    return isWell
  }

  return {
    keep,
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
