import { sql } from 'kysely'
import { type KeptTombstones, type MarkedTombstone, markOf, type Tombstone } from '../../domain/history/erased.ts'
import type { Session } from '../engine.ts'
import { loadSetting, RESTORED_TOMBSTONES, removeSetting, TOMBSTONE_KEY } from '../settings.ts'
import { statement } from '../statement.ts'
import type { Tables } from '../tables.ts'

const find = statement<{ marks: readonly string[] }>()((db, p, { oneOfTexts }) =>
  db.selectFrom('tombstone').selectAll().where('mark', 'in', oneOfTexts(p.marks)),
)
const upsert = statement<{ mark: string; parcelId: number; erasedAtMs: number }>()((db, p) =>
  db
    .insertInto('tombstone')
    .values({ mark: p.mark, parcel_id: p.parcelId, erased_at_ms: p.erasedAtMs })
    .onConflict((conflict) => conflict.column('mark').doUpdateSet({ parcel_id: p.parcelId, erased_at_ms: p.erasedAtMs })),
)
const all = statement()((db) => db.selectFrom('tombstone').selectAll().orderBy('mark'))

const first = statement()((db) => db.selectFrom('tombstone').select('mark').limit(sql.lit(1)))

export async function hasTombstones(session: Session): Promise<boolean> {
  return (await session.all(first, {})).length > 0
}

/** Returns tombstones by identifier. */
export async function findTombstones(
  session: Session,
  key: Uint8Array,
  identifiers: readonly string[],
): Promise<ReadonlyMap<string, Tombstone>> {
  if (identifiers.length === 0) return new Map()
  const byMark = new Map(identifiers.map((value) => [markOf(key, value), value]))
  const found = (await session.all(find, { marks: [...byMark.keys()] })).map(decodeTombstone)
  return new Map(found.map(({ mark, ...tombstone }) => [byMark.get(mark) ?? '', tombstone]))
}

/** Replaces an earlier tombstone with the same mark. */
export function saveTombstone(session: Session, { mark, parcelId, erasedAtMs }: MarkedTombstone): void {
  session.enqueueWrite(upsert, { mark, parcelId, erasedAtMs })
}

/** Loads the sealed key of the tombstones; null: no key has been made yet. */
export async function loadTombstoneKey(session: Session): Promise<string | null> {
  const sealed = await loadSetting(session, TOMBSTONE_KEY)
  return sealed === null ? null : Buffer.from(sealed).toString()
}

export async function storedTombstones(session: Session): Promise<KeptTombstones> {
  const sealedKey = await loadTombstoneKey(session)
  const tombstones = (await session.all(all, {})).map(decodeTombstone)
  return { sealedKey, tombstones }
}

const removeAll = statement()((db) => db.deleteFrom('tombstone'))

/** Removes all tombstones with their key. Returns how many the store had. */
export async function dropTombstones(session: Session): Promise<number> {
  removeSetting(session, TOMBSTONE_KEY)
  removeSetting(session, RESTORED_TOMBSTONES)
  return (await session.run(removeAll, {})).rows
}

function decodeTombstone({ mark, parcel_id: parcelId, erased_at_ms: erasedAtMs }: Tables['tombstone']): MarkedTombstone {
  return { mark, parcelId, erasedAtMs }
}

const identifiersAfter = statement<{ after: string; limit: number }>()((db, p) =>
  db.selectFrom('identifier').select(['value', 'parcel_id as parcelId']).where('value', '>', p.after).orderBy('value').limit(p.limit),
)

export async function listIdentifiers(
  session: Session,
  page: { readonly after: string; readonly limit: number },
): Promise<readonly { readonly value: string; readonly parcelId: number }[]> {
  return await session.all(identifiersAfter, page)
}
