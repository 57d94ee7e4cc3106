import { addressOf, movesOf, settingOf } from '../../assembly/storage/store-address.ts'
import type { Config } from '../../core/config/config.ts'
import type { Log } from '../../core/flow/ports.ts'
import { decodeMoveAddress } from './move-address.ts'
import { tryStoreFile } from './try-store-file.ts'

/** The most moves to follow from the store in the config to the one in use. */
export const MOVES_MAX = 100

/**
 * Returns the config with the store that is in use. If the store in the config was moved, the result names the new store. So an operator need
 * not change the config before a restart. Rejects if the new store cannot be found or opened.
 */
export async function findStoreInUse(config: Config, log: Pick<Log, 'warn'>): Promise<Config> {
  let inUse = config
  for (let moves = 0; moves < MOVES_MAX; moves++) {
    const from = addressOf(inUse)
    const mark = await movesOf(from).readMark(from.address)
    if (mark?.state !== 'moved') return inUse
    const to = await decodeMoveAddress(config, mark.address)
    const store = movesOf(from).nameOf(from.address)
    if (to === null)
      throw new Error(`store: ${store} was moved to ${mark.peer}. No key in secrets.atRestKeys opens its address: name it in \`store\`.`)
    await tryStoreFile(to)
    // If the move was killed right after its switch, it has not released the new store.
    await movesOf(to).release(to.address, mark.moveId)
    log.warn(
      { store, movedTo: mark.peer, movedAt: new Date(mark.atMs).toISOString() },
      'the store was moved, and the relay uses the new one: name it in `store`. Until then the relay looks it up at every start',
    )
    inUse = { ...inUse, store: settingOf(to) }
  }
  throw new Error('store: it was moved too often. Name the last store in `store`.')
}
