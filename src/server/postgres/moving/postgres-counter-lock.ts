import type { WritersLock } from '../../../upkeep/moving/store-moves.rows.ts'
import { type MoveClient, openMoveClient } from './postgres-move-client.ts'

const WAIT_MS_MAX = 1000

interface Held {
  readonly letGo: () => void
  readonly ended: Promise<void>
}

/**
 * Makes a lock of the counter, which blocks all recording. No deadlock is possible, because every transaction that records locks the counter
 * last. The lock has a connection to itself, because it may be released while the move's connection is busy.
 */
export function createCounterLock(address: string): WritersLock & { close(): Promise<void> } {
  let client: MoveClient | null = null
  let held: Held | null = null
  const close = async () => {
    const opened = client
    client = null
    await opened?.close()
  }
  return {
    async take() {
      client ??= await openMoveClient(address)
      try {
        held = await hold(client)
      } catch (error) {
        await close()
        throw error
      }
    },
    async release() {
      const { letGo, ended } = held ?? {}
      held = null
      letGo?.()
      // If the commit fails, closing the connection releases the lock.
      await ended?.catch(close)
    },
    close,
  }
}

async function hold({ query, transaction }: MoveClient): Promise<Held> {
  const taken = Promise.withResolvers<void>()
  const { promise, resolve: letGo } = Promise.withResolvers<void>()
  const ended = transaction({ lock_timeout: WAIT_MS_MAX }, async () => {
    await query("select from counter where name = 'sequence' for update")
    taken.resolve()
    await promise
  })
  ended.catch(taken.reject)
  await taken.promise
  return { letGo, ended }
}
