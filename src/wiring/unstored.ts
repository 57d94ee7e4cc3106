import { createUnstored, type Unstored } from '../flow/admin/unstored.ts'
import type { Log } from '../flow/ports.ts'
import type { Closing } from './closing.ts'
import type { Storage } from './storage/opened-storage.ts'

/**
 * Opens what keeps writes that the store could not take, and writes those that the last run has left. Call it before the parts that are added to it,
 * so that it closes after them.
 */
export async function openUnstored(
  { write, unstoredFile: file, clock }: Pick<Storage, 'write' | 'unstoredFile' | 'clock'>,
  wake: () => void,
  closing: Closing,
  log: Log,
): Promise<Unstored> {
  const unstored = createUnstored({ write, file, clock, log, wake })
  await unstored.retry()
  closing.add(() => unstored.retry())
  return unstored
}
