import type { MoveMark, MoveSide } from './move-mark.rows.ts'
import type { MoveSource, MoveTarget } from './move-ports.rows.ts'

/** If the store is a file, no other relay can begin to use it before `release`. */
export interface StoreHold {
  /** The relay that uses the store, for messages; null: no relay uses it. */
  readonly usedBy: string | null
  release(): void
}

/** How an engine moves data from and to its stores. An `address` is the same as for `Engine`. */
export interface StoreMoves {
  /** Returns the name for messages. */
  nameOf(address: string): string
  openSource(address: string, side: MoveSide): Promise<MoveSource>
  openTarget(address: string, side: MoveSide): Promise<MoveTarget>
  /** Reads the mark of a move; null: the store has no mark, or does not exist. */
  readMark(address: string): Promise<MoveMark | null>
  /**
   * Removes what a move has left in the old store if its process was killed. Leaves the moves of live relays alone. Only a relay that uses the
   * store may call this.
   */
  clear(address: string, nowMs: number): Promise<void>
  /** Completes a move whose process was killed right after the switch, so that the new store can be opened. */
  release(address: string, moveId: string): Promise<void>
  /** Finds out which relay uses a store. Rejects if the store is gone or cannot be reached. */
  holdUnused(address: string): Promise<StoreHold>
  /** Puts the old store of a move back into use. Its data is as it was at the switch. Returns its mark; null: the store was not moved. */
  undo(address: string, nowMs: number): Promise<MoveMark | null>
}
