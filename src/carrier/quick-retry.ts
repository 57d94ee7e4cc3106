import pRetry from 'p-retry'
import type { Answered, Failed } from './exchange.ts'

const RETRIES = 2
const FIRST_PAUSE_MS = 100
const PASSING: ReadonlySet<number> = new Set([502, 503, 504])

/**
 * Asks up to twice more, after a short jittered pause, when the trouble looks like one of the moment: the connection was refused or
 * reset, or a gateway had no backend. A `Retry-After` is the other side's own word on when to ask again, so it is never asked sooner.
 */
export async function withQuickRetries(ask: () => Promise<Answered | Failed>, signal: AbortSignal): Promise<Answered | Failed> {
  const passing = new Error('trouble of the moment')
  let last: Answered | Failed | null = null
  const attempt = async (): Promise<Answered | Failed> => {
    const result = await ask()
    // A further try that was not let out, or cut at once, says less than the one before.
    if (last === null || result.kind === 'answered' || result.conclusive) last = result
    if (isPassing(last)) throw passing
    return last
  }
  try {
    return await pRetry(attempt, { retries: RETRIES, minTimeout: FIRST_PAUSE_MS, randomize: true, signal })
  } catch (error) {
    if (error !== passing && !signal.aborted) throw error
    return last ?? { kind: 'failed', reason: 'timeout', detail: 'did_not_leave', conclusive: false, quick: false }
  }
}

function isPassing(result: Answered | Failed): boolean {
  if (result.kind === 'failed') return result.quick
  return PASSING.has(result.status) && result.header('retry-after') === null
}
