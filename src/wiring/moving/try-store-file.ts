import { OPENING_MS, tryOpening } from '../../runtime/opening/try-opening.ts'
import { behindLinks } from '../../store/sqlite/hold-store.ts'
import { STORE_SUFFIXES } from '../../store/sqlite/permissions.ts'
import type { StoreAddress } from '../storage/store-address.ts'

/**
 * Rejects if the file of a store does not open in time, with a message that names the file. Does nothing for a store on a server, because
 * connections have a time-out.
 */
export async function tryStoreFile({ engine, address }: StoreAddress, signal?: AbortSignal): Promise<void> {
  if (engine !== 'sqlite') return
  const files = STORE_SUFFIXES.map((suffix) => ({ what: 'store', path: `${behindLinks(address)}${suffix}` }))
  await tryOpening([() => files], { deadlineMs: OPENING_MS, ...(signal === undefined ? {} : { signal }) })
}
