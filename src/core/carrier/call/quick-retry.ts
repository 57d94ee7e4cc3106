import pRetry from 'p-retry'
import type { CallSpender } from '../../domain/admin/tally.ts'
import type { Answered, Failed } from './exchange.ts'

const RETRIES = 2
const FIRST_PAUSE_MS = 100
const PASSING: ReadonlySet<number> = new Set([502, 503, 504])

/**
 * Repeats a request up to twice, after a short random pause, if its failure looks temporary: the connection was refused or reset, or a gateway had no
 * backend. A request whose answer has a `Retry-After` is not repeated here.
 */
export async function withQuickRetries(ask: () => Promise<Answered | Failed>, signal: AbortSignal): Promise<Answered | Failed> {
  const passing = new Error('temporary failure')
  let last: Answered | Failed | null = null
  const attempt = async (): Promise<Answered | Failed> => {
    const result = await ask()
    // A repeat that was not sent, or was cut off early, tells nothing about the carrier. So keep the result of the request before it.
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

/** Returns a function that names the spender of each call that one request makes: `sender` for the first call, and `repeat` for its repeats. */
export function spentBy(sender: CallSpender): () => CallSpender {
  let isFirst = true
  return () => {
    const spender = isFirst ? sender : 'repeat'
    isFirst = false
    return spender
  }
}

function isPassing(result: Answered | Failed): boolean {
  if (result.kind === 'failed') return result.quick
  return PASSING.has(result.status) && result.header('retry-after') === null
}
