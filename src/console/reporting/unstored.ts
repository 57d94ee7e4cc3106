import type { Relay } from '../../core/wiring/relay.ts'
import { createUnstored, type Unstored } from '../events/unstored.ts'

type Parts = Pick<Relay, 'write' | 'unstoredFile' | 'clock' | 'wakeDispatcher' | 'closing' | 'log'>

/**
 * Opens what keeps writes that the store could not take, and writes those that the last run has left. Call it before the parts that are added to it,
 * so that it closes after them.
 */
export async function openUnstored({ write, unstoredFile: file, clock, wakeDispatcher: wake, closing, log }: Parts): Promise<Unstored> {
  const unstored = createUnstored({ write, file, clock, log, wake })
  await unstored.retry()
  closing.add(() => unstored.retry())
  return unstored
}
