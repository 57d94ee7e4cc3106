import type { Config } from '../../config/config.ts'
import type { Log } from '../../flow/ports.ts'
import { movesOf, placeOf, settingOf } from '../storage/store-places.ts'
import { decodeMoveAddress } from './move-address.ts'
import { tryPlace } from './try-place.ts'

/** A store may have been moved many times without a change of the config. */
export const MOVES_MAX = 100

/**
 * Returns the config with the store that is in use: if the store that it names was moved, with the new one, so that a restart needs nobody.
 * Rejects if the new store cannot be found or opened.
 */
export async function followMoves(config: Config, log: Pick<Log, 'warn'>): Promise<Config> {
  let followed = config
  for (let moves = 0; moves < MOVES_MAX; moves++) {
    const from = placeOf(followed)
    const mark = await movesOf(from).readMark(from.place)
    if (mark?.state !== 'moved') return followed
    const to = await decodeMoveAddress(config, mark.address)
    const store = movesOf(from).nameOf(from.place)
    if (to === null)
      throw new Error(`store: ${store} was moved to ${mark.peer}. No key in secrets.atRestKeys opens its address: name it in \`store\`.`)
    await tryPlace(to)
    // A move that was killed right after its switch has not released the new store.
    await movesOf(to).release(to.place, mark.moveId)
    log.warn(
      { store, movedTo: mark.peer, movedAt: new Date(mark.atMs).toISOString() },
      'the store was moved and the relay follows it: name the new place in `store`, which the relay uses at every start until then',
    )
    followed = { ...followed, store: settingOf(to) }
  }
  throw new Error('store: it was moved too often to follow. Name the last place in `store`.')
}
