import { movesOf, type StoreAddress } from '../../assembly/storage/store-address.ts'
import { AppError } from '../../core/domain/errors.ts'
import { hostOnThread } from '../../core/runtime/threads/thread.ts'
import type { Mover } from './manage-moves.ts'

export interface MoverData {
  readonly from: StoreAddress
  readonly to: StoreAddress
  readonly moveId: string
  readonly atMs: number
  /** The encoded address of the new store. The old store keeps it, for relays whose config still names the old store. */
  readonly address: string
  readonly replicaId: number
}

/** The functions of the mover's thread that other threads can call. */
export interface MoverVerbs extends Omit<Mover, 'to'> {
  openSource(): Promise<void>
  /** Opens the new store and reserves it for this move. Rejects if the store is not empty. */
  openTarget(): Promise<void>
}

const RETRY_AFTER_MS = 5000
/** The thread's young heap has room for a batch of rows, which may take some megabytes. */
const YOUNG_MB = 32

export interface MoverPorts {
  /** Throws if the store may not be moved. */
  readonly check: () => Promise<void>
  /** Aborted when nobody waits any longer for the stores to open. */
  readonly signal: AbortSignal
}

/**
 * Hosts a move on a separate thread. Throws `not_movable` if the new store cannot be used, and `storage_unavailable` if the old store cannot be
 * moved now. Opens the old store first, so that the new store stays untouched if the old one cannot be moved.
 */
export async function hostMover(data: MoverData, { check, signal }: MoverPorts): Promise<Mover> {
  // Use the extension of this file: sources run as `.ts` in development and as `.js` from `dist`.
  const file = new URL(`./mover-thread${import.meta.url.slice(-3)}`, import.meta.url)
  const { verbs, end } = await hostOnThread<MoverVerbs>(file, { name: 'mover', data, youngMb: YOUNG_MB })
  let closed: Promise<void> | null = null
  const closeAll = async () => {
    try {
      await verbs.close()
    } finally {
      // The thread may still be waiting for a server that does not answer.
      await end()
    }
  }
  const close = () => {
    closed ??= closeAll()
    return closed
  }
  const take = async () => {
    await check()
    await unlessAborted(verbs.openTarget(), signal).catch((cause: unknown) => {
      throw new AppError('not_movable', cause instanceof Error ? cause.message : 'The new store cannot be opened.', { cause })
    })
  }
  try {
    await unlessAborted(verbs.openSource(), signal).catch((cause: unknown) => {
      const why = cause instanceof Error ? cause.message.replace(/^store: /, '').replace(/\.$/, '') : 'it cannot be opened'
      throw new AppError('storage_unavailable', `The store cannot be moved now: ${why}.`, { cause, retryAfterMs: RETRY_AFTER_MS })
    })
    await take().catch(async (error: unknown) => {
      await verbs.abandon('The new store could not be used.', data.atMs)
      throw error
    })
  } catch (error) {
    await close()
    throw error
  }
  return { ...verbs, to: movesOf(data.to).nameOf(data.to.address), close }
}

async function unlessAborted<T>(opening: Promise<T>, signal: AbortSignal): Promise<T> {
  const stopping = Promise.withResolvers<never>()
  const abort = () => stopping.reject(new Error('the relay is stopping'))
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  try {
    return await Promise.race([opening, stopping.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
