import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SERVER_STORES } from '../../../src/server/postgres/server-stores.ts'
import { makeBackup } from '../../../src/upkeep/backups/make-backup.ts'
import { restoreBackup } from '../../../src/upkeep/restore/restore-backup.ts'
import { sqlite } from '../../../src/upkeep/sqlite-engine.ts'
import { OPERATOR } from '../relay/operator.ts'
import { temporaryFolder } from '../runner/temporary.ts'
import type { Place } from './moving.ts'
import { copyDatabase } from './postgres-database.ts'
import { changeStoredRows } from './stored-rows.ts'

/** A backup of a store: a file, or a copy of a database. */
export type TakenBackup = Place & { readonly file: string }

/** Backs up a store that nobody has open. */
export async function takeBackup({ engine, place }: Place, madeAtMs: number): Promise<TakenBackup> {
  if (engine.name !== sqlite.name) return { engine, place, file: await copyDatabase(place) }
  const [directory, copy] = [temporaryFolder(), `${place}.copy`]
  writeFileSync(`${place}.key`, `${Buffer.alloc(32, 7).toString('base64')}\n`)
  await changeStoredRows(place, `vacuum into '${copy}'`)
  const order = {
    name: 'taken',
    directory,
    copy,
    keyFile: `${place}.key`,
    madeAtMs,
    version: '1',
    keys: [],
    sequence: 0,
    keep: 2,
    lastPlace: null,
  }
  for (const work = makeBackup(order); work.next().done !== true; );
  return { engine, place, file: join(directory, 'taken.db') }
}

/** Restores a backup, as `parcel-relay restore` does. `last`: the highest sequence that anybody has seen. Nothing was erased since the backup. Returns where the store is. */
export async function restoreTaken(
  backup: TakenBackup,
  { last, nowMs }: { readonly last: number; readonly nowMs: number },
): Promise<Place> {
  const { engine, place, file } = backup
  if (engine.name !== sqlite.name) {
    const address = await copyDatabase(file)
    await SERVER_STORES.markRestored({ address, last, tombstones: null, nowMs, by: OPERATOR })
    return { engine, place: address }
  }
  await restoreBackup(
    {
      store: place,
      file,
      last: null,
      tombstones: null,
      forgetsErasures: false,
      isConfirmed: true,
      isOtherRelay: false,
      nowMs,
      by: OPERATOR,
    },
    {
      onStep: () => undefined,
      proveKeys: async ({ tombstoneKeys }) => ({ otherKeys: [], lostKeys: [], tombstoneKey: tombstoneKeys[0] ?? null }),
    },
  )
  return { engine, place }
}
