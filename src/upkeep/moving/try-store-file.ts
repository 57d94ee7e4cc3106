import type { StoreAddress } from '../../assembly/storage/store-address.ts'
import { OPENING_MS, tryOpening } from '../../core/runtime/opening/try-opening.ts'
import { behindLinks } from '../../core/store/sqlite/lock.ts'
import { STORE_SUFFIXES } from '../../core/store/sqlite/whole-file.ts'

/**
 * Rejects if the file of a store does not open in time, with a message that names the file. Does nothing for a store on a server, because
 * connections have a time-out.
 */
export async function tryStoreFile({ engine, address }: StoreAddress, signal?: AbortSignal): Promise<void> {
  if (engine !== 'sqlite') return
  const files = STORE_SUFFIXES.map((suffix) => ({ what: 'store', path: `${behindLinks(address)}${suffix}` }))
  await tryOpening([() => files], { deadlineMs: OPENING_MS, ...(signal === undefined ? {} : { signal }) })
}
