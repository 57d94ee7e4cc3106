import { OPENING_MS, tryOpening } from '../../runtime/opening/try-opening.ts'
import { STORE_SUFFIXES } from '../../store/sqlite/permissions.ts'
import type { StorePlace } from '../storage/store-places.ts'

/** Rejects, with a message that names it, if the file of a store does not open in time. A server has a time-out of its own. */
export async function tryPlace({ engine, place }: StorePlace, signal?: AbortSignal): Promise<void> {
  if (engine !== 'sqlite') return
  const files = STORE_SUFFIXES.map((suffix) => ({ what: 'store', path: `${place}${suffix}` }))
  await tryOpening([() => files], { deadlineMs: OPENING_MS, ...(signal === undefined ? {} : { signal }) })
}
