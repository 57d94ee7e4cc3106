import { OPENING_MS, tryOpening } from '../../runtime/opening/try-opening.ts'
import { STORE_SUFFIXES } from '../../store/sqlite/permissions.ts'
import type { StorePlace } from '../storage/store-places.ts'

/** Rejects, with a message that names the file, if the file of a store does not open in time. Connections to a server time out anyway. */
export async function tryPlace({ engine, place }: StorePlace, signal?: AbortSignal): Promise<void> {
  if (engine !== 'sqlite') return
  const files = STORE_SUFFIXES.map((suffix) => ({ what: 'store', path: `${place}${suffix}` }))
  await tryOpening([() => files], { deadlineMs: OPENING_MS, ...(signal === undefined ? {} : { signal }) })
}
