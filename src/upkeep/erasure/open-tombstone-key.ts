import { randomBytes } from 'node:crypto'
import type { Config } from '../../core/config/config.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { createTombstoneKeyKeeper, type TombstoneKeyKeeper } from './tombstone-key.ts'

const KEY_BYTES = 32

type Parts = Pick<Relay, 'write' | 'clock' | 'vault' | 'atRest' | 'log'>

/**
 * Opens the key of the tombstones. Call it before anything is recorded. On PostgreSQL the first start makes the key, because any replica may
 * erase a parcel at any time, and all of them must then recognize it. A relay that does not share its store makes the key at its first erasure.
 */
export async function openTombstoneKey(config: Config, { write, clock, vault, atRest, log }: Parts): Promise<TombstoneKeyKeeper> {
  const where = () => atRest.keyFile() ?? 'secrets.atRestKeys'
  const key = createTombstoneKeyKeeper({ write, vault, makeKey: () => randomBytes(KEY_BYTES), where, clock })
  const erased = await key.open()
  if (erased > 0) log.info({ identifiers: erased }, 'the store was restored: what had been erased since its backup was erased again')
  if (config.store.engine === 'postgres') await key.ensure()
  return key
}
