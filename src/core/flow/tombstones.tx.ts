import { type ErasedName, markOf, type Tombstone } from '../domain/history/erased.ts'
import type { Session } from '../store/engine.ts'
import { findByMarks } from '../store/history/tombstones.ts'
import type { WriteTx } from '../store/write-store.ts'

/** Returns tombstones by identifier. */
export async function findTombstones(
  session: Session,
  key: Uint8Array,
  identifiers: readonly string[],
): Promise<ReadonlyMap<string, Tombstone>> {
  if (identifiers.length === 0) return new Map()
  const byMark = new Map(identifiers.map((value) => [markOf(key, value), value]))
  const found = await findByMarks(session, [...byMark.keys()])
  return new Map(found.map(({ mark, ...tombstone }) => [byMark.get(mark) ?? '', tombstone]))
}

/**
 * Saves tombstones for identifiers, in one order, so that two transactions cannot wait for each other. A missing key is a bug, because the key is
 * made before anything is erased.
 */
export function addTombstones(tx: WriteTx, key: Uint8Array | null, names: readonly ErasedName[]): void {
  if (key === null) throw new Error('identifiers are erased without a key for their tombstones')
  const marked = names.map(({ value, parcelId, erasedAtMs }) => ({ mark: markOf(key, value), parcelId, erasedAtMs }))
  tx.addTombstones(marked.sort((a, b) => (a.mark < b.mark ? -1 : 1)))
}
