import { type KeptTombstones, missedTombstones } from '../../../core/domain/history/erased.ts'
import type { Session } from '../../../core/store/engine.ts'
import { storedTombstones } from '../../../core/store/history/tombstones.ts'
import { loadSetting, RESTORED_TOMBSTONES } from '../../../core/store/settings.ts'
import { decodeTombstones, encodeTombstones } from '../../../core/store/tombstone-lines.ts'
import type { MoveClient } from '../moving/postgres-move-mark.ts'

/** Gives a restored database the tombstones of what was erased after its backup. Each replica repeats these erasures before it serves. */
export async function keepRestored({ query }: Pick<MoveClient, 'query'>, tombstones: KeptTombstones): Promise<void> {
  await query('insert into setting (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value', [
    RESTORED_TOMBSTONES,
    Buffer.from(encodeTombstones(tombstones)),
  ])
}

/** Loads the tombstones that a restored database was given, but whose erasures it has not repeated yet. */
export async function missedAfterRestore(session: Session): Promise<KeptTombstones> {
  const kept = await loadSetting(session, RESTORED_TOMBSTONES)
  if (kept === null) return { sealedKey: null, tombstones: [] }
  const { sealedKey, tombstones } = decodeTombstones(Buffer.from(kept).toString(), `the setting ${RESTORED_TOMBSTONES}`)
  return { sealedKey, tombstones: missedTombstones(tombstones, (await storedTombstones(session)).tombstones) }
}
