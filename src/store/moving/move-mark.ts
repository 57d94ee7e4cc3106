/** What a move has written into a store about itself. */
export interface MoveMark {
  /**
   * `copying`: it is in use and being copied; `pausing`: nobody is to write, for the switch; `moved`: another is in its place; `receiving`: it is filled,
   * and not yet complete.
   */
  readonly state: 'copying' | 'pausing' | 'moved' | 'receiving'
  /** The same on both sides of a move, and of no other. */
  readonly moveId: string
  /** Names the other store. */
  readonly peer: string
  /** The address of the other store: a path, or the encrypted address of a database. */
  readonly address: string
  /** When it was switched; before that, when it began. */
  readonly atMs: number
  /** The replica that moves it. */
  readonly replicaId: number
}

/** One side of a move. */
export type MoveSide = Omit<MoveMark, 'state'>

/** The name of the table with the mark. It is there only while a move needs it. */
export const MARK_TABLE = 'moving'

/** The columns of the mark, for a statement. */
export const MARK_COLUMNS = 'state, move_id, peer, address, at_ms, replica_id'

/** A row of the table. */
export interface MarkRow {
  readonly state: MoveMark['state']
  readonly move_id: string
  readonly peer: string
  readonly address: string
  readonly at_ms: number
  readonly replica_id: number
}

export function decodeMark({ state, move_id, peer, address, at_ms, replica_id }: MarkRow): MoveMark {
  return { state, moveId: move_id, peer, address, atMs: at_ms, replicaId: replica_id }
}

/** The values in the order of `MARK_COLUMNS`. */
export function encodeMark({ state, moveId, peer, address, atMs, replicaId }: MoveMark): [string, string, string, string, number, number] {
  return [state, moveId, peer, address, atMs, replicaId]
}

/** Throws if a store cannot be used because of a move. `place` names it in the message. */
export function refuseMoved(mark: MoveMark | null, place: string): void {
  if (mark === null || mark.state === 'copying' || mark.state === 'pausing') return
  if (mark.state === 'receiving')
    throw new Error(
      `store: ${place} holds a part of ${mark.peer}, from a move that has not ended. Nothing was changed. ` +
        `Start the relay with the store it came from and move it again, or name another place.`,
    )
  throw new Error(
    `store: ${place} was moved to ${mark.peer} at ${new Date(mark.atMs).toISOString()} and is out of use. Nothing was changed. ` +
      'Name the new place in `store`. To go back to this one, without anything that came since: parcel-relay move-store --undo.',
  )
}

/** Throws because a place belongs to one move until its switch. */
export function refuseShared(place: string, cause?: unknown): never {
  throw new Error(`store: another move has begun to fill ${place}. Name another place, or wait for it.`, { cause })
}

/** Throws because a move may not write to a store that holds something. */
export function refuseTaken(place: string, table: string): never {
  throw new Error(
    `store: ${place} is not empty (it has rows in ${table}), and a move overwrites nothing. Nothing was changed. Name another.`,
  )
}
