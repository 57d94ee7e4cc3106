import type { StoreSettings } from '../../core/config/config.ts'
import { TOMBSTONE_SEAL } from '../../core/domain/history/erased.ts'
import { createVault } from '../../core/ops/vault.ts'
import { systemClock } from '../../core/runtime/system-clock.ts'
import { addAction } from '../../core/store/admin/operations.ts'
import type { OpenWriteStore } from '../../core/store/contract.ts'
import { dropTombstones, hasTombstones } from '../../core/store/history/tombstones.ts'
import { behindLinks } from '../../core/store/sqlite/lock.ts'
import { setTombstonesAside } from '../../core/store/sqlite/tombstone-file.ts'
import { openAtRestKeys } from '../../core/wiring/at-rest-keys.ts'
import { inspectSqlite } from '../check/inspect-sqlite.ts'
import { whoRuns } from '../restore/run-restore.ts'
import { sqlite } from '../sqlite-engine.ts'
import type { ServerStores } from '../stores-on-servers.ts'

/** Tombstones whose key no at-rest key decrypts, so that no relay starts on their store. */
export interface LostTombstones {
  /** How many tombstones were removed; null: nothing was changed. */
  readonly givenUp: number | null
  /** The file or setting with the at-rest key. */
  readonly where: string
  /** The name under which the file of the tombstones is kept; null: there is none, or nothing was changed. */
  readonly aside: string | null
}

/**
 * Removes the tombstones of a store whose key is lost. Throws if they are not lost, or if a relay uses the store. `isConfirmed` false: changes
 * nothing.
 */
export async function giveUpTombstones(
  config: StoreSettings,
  { isConfirmed }: { readonly isConfirmed: boolean },
  server: ServerStores,
): Promise<LostTombstones> {
  const { store } = config
  const place = store.engine === 'sqlite' ? behindLinks(store.path) : store.url.reveal()
  if (store.engine === 'sqlite' && inspectSqlite(place).state === 'new') throw new Error(`there is no store at ${place}`)
  if (store.engine === 'postgres' && (await server.inspect(place)).replicas > 0)
    throw new Error(
      `relays use ${server.nameOf(place)}. Stop them first, and wait some seconds if they have just ended. Nothing was changed.`,
    )
  const open = await (store.engine === 'sqlite' ? sqlite : server.engine).openWriteStore(place)
  try {
    const atRest = openAtRestKeys(config, store.engine === 'sqlite' ? place : server.nameOf(place))
    const { sealedKeys, missed, isAny } = await tombstonesOf(open)
    if (!isAny) throw new Error('nothing was erased in this store, so there are no tombstones to give up')
    const opened = await Promise.all(sealedKeys.map((sealed) => createVault(atRest.keys).open(sealed, TOMBSTONE_SEAL)))
    if (opened.some((text) => text !== null))
      throw new Error('the key of the tombstones can be decrypted, so nothing is lost. Nothing was changed.')
    const where = atRest.keyFile() ?? 'secrets.atRestKeys'
    if (!isConfirmed) return { where, givenUp: null, aside: null }
    const atMs = systemClock.now()
    const givenUp = await open.transaction(async (tx) => {
      const count = missed + (await dropTombstones(tx))
      addAction(tx, { atMs, by: whoRuns(), action: 'secrets.tombstones_given_up', target: null, detail: { tombstones: count } })
      return count
    })
    return { where, givenUp, aside: store.engine === 'sqlite' ? setTombstonesAside(place, atMs) : null }
  } finally {
    await open.close()
  }
}

/** Looks for tombstones in the store, and counts those that only its file or a restore has. */
async function tombstonesOf(store: OpenWriteStore) {
  const { sealedKey, tombstones } = await store.missedTombstones()
  const stored = await store.transaction(async (tx) => ({ key: await tx.loadTombstoneKey(), isAny: await hasTombstones(tx) }))
  return {
    sealedKeys: [stored.key, sealedKey].filter((sealed) => sealed !== null),
    missed: tombstones.length,
    isAny: stored.isAny || tombstones.length > 0,
  }
}
