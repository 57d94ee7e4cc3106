import { randomBytes } from 'node:crypto'
import type { Config } from '../config/config.ts'
import { createTombstoneKeyKeeper, type TombstoneKeyKeeper } from '../flow/admin/erasure/tombstone-key.ts'
import type { Vault } from '../flow/delivery/vault.ts'
import type { Log } from '../flow/ports.ts'
import type { AtRest } from './at-rest-keys.ts'
import type { Storage } from './storage/opened-storage.ts'

const KEY_BYTES = 32

export interface TombstoneKeyPorts {
  readonly storage: Pick<Storage, 'write' | 'clock'>
  readonly vault: Vault
  readonly atRest: Pick<AtRest, 'keyFile'>
  readonly log: Pick<Log, 'info'>
}

/**
 * Opens the key of the tombstones. Call it before anything is recorded. On PostgreSQL the first start makes the key, because any replica may
 * erase a parcel at any time, and all of them must then recognize it. A relay that does not share its store makes the key at its first erasure.
 */
export async function openTombstoneKey(config: Config, { storage, vault, atRest, log }: TombstoneKeyPorts): Promise<TombstoneKeyKeeper> {
  const { write, clock } = storage
  const where = () => atRest.keyFile() ?? 'secrets.atRestKeys'
  const key = createTombstoneKeyKeeper({ write, vault, makeKey: () => randomBytes(KEY_BYTES), where, clock })
  const erased = await key.open()
  if (erased > 0) log.info({ identifiers: erased }, 'the store was restored: what had been erased since its backup was erased again')
  if (config.store.engine === 'postgres') await key.ensure()
  return key
}
