import type { MoveSource, MoveTarget } from '../../flow/admin/moving/move-ports.ts'
import type { MoveMark, MoveSide } from './move-mark.ts'

/** Whether a relay works on a store. */
export interface StoreHold {
  /** Who works on it; null: nobody. */
  readonly usedBy: string | null
  release(): void
}

/** What an engine does for moves from and to its stores. A place is what `Engine` takes. */
export interface StoreMoves {
  /** How messages name a place. */
  nameOf(place: string): string
  openSource(place: string, side: MoveSide): Promise<MoveSource>
  openTarget(place: string, side: MoveSide): Promise<MoveTarget>
  /** What a move has written into a store; null: nothing, or there is no such store. */
  readMark(place: string): Promise<MoveMark | null>
  /** Ends what a move that was killed has left in the store it copied from, if nobody runs it any more. Only who uses the store may call this. */
  clear(place: string, nowMs: number): Promise<void>
  /** A move that was killed right after its switch is complete: the store it has filled may be opened. */
  release(place: string, moveId: string): Promise<void>
  /** Finds out who uses a store. On a file nobody can begin to until it is released. Rejects if the store is gone or cannot be reached. */
  holdUnused(place: string): Promise<StoreHold>
  /** Takes back that a store was moved: it is in use again as it was then. Returns the mark; null: it was not moved. */
  undo(place: string, nowMs: number): Promise<MoveMark | null>
}
