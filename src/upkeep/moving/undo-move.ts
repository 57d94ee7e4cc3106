import { addressOf, movesOf } from '../../assembly/storage/store-address.ts'
import type { StoreSettings } from '../../core/config/config.ts'
import { describeFailure } from '../../core/domain/system-reason.ts'
import { decodeMoveAddress, MOVES_MAX } from './store-in-use.ts'
import type { MoveMark, StoreHold } from './store-moves.rows.ts'

/** The result of undoing a move. `store`: the name of the store to which the config's store was moved. */
export type UndoneMove =
  | { readonly kind: 'not_moved' }
  | { readonly kind: 'in_use'; readonly store: string; readonly usedBy: string }
  /** `unverified`: why nobody knows whether a relay uses that store; null: no relay uses it. */
  | { readonly kind: 'undone'; readonly atMs: number; readonly store: string; readonly unverified: string | null }

/** The store that has replaced a moved store. `hold` null: the store could not be reached. */
type Successor = { readonly name: string } & ({ readonly hold: StoreHold } | { readonly hold: null; readonly unverified: string })

/**
 * Goes back to the store that the config names, with its data at the time of the move. Changes nothing if a relay uses the new store, because
 * the pushes that were acknowledged there would be lost. If the new store is gone or out of reach, undoes the move all the same, because then
 * the old store is needed.
 */
export async function undoMove(config: StoreSettings): Promise<UndoneMove> {
  const { engine, address } = addressOf(config)
  const mark = await movesOf({ engine }).readMark(address)
  if (mark?.state !== 'moved') return { kind: 'not_moved' }
  const successor = await holdSuccessor(config, mark)
  const store = successor.name
  try {
    const usedBy = successor.hold?.usedBy ?? null
    if (usedBy !== null) return { kind: 'in_use', store, usedBy }
    const undone = await movesOf({ engine }).undo(address, Date.now())
    if (undone === null) return { kind: 'not_moved' }
    return { kind: 'undone', atMs: undone.atMs, store, unverified: successor.hold === null ? successor.unverified : null }
  } finally {
    successor.hold?.release()
  }
}

/** Finds the store at the end of a chain of moves. If the store is a file, locks it, so that no relay starts on it. */
async function holdSuccessor(config: StoreSettings, moved: MoveMark): Promise<Successor> {
  let name = moved.peer
  try {
    let mark = moved
    for (let moves = 0; moves < MOVES_MAX; moves++) {
      const to = await decodeMoveAddress(config, mark.address)
      if (to === null) return { name, hold: null, unverified: 'no key in secrets.atRestKeys opens its address' }
      const next = await movesOf(to).readMark(to.address)
      if (next?.state !== 'moved') return { name, hold: await movesOf(to).holdUnused(to.address) }
      mark = next
      name = next.peer
    }
    return { name, hold: null, unverified: 'it was moved too often' }
  } catch (error) {
    const why = describeFailure(error)
    return { name, hold: null, unverified: why.replace(/^store: /, '').replace(/\.$/, '') }
  }
}
