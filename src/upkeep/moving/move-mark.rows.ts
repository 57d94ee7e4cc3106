/** The record that a move writes into the old store and the new one. */
export interface MoveMark {
  /**
   * `copying`: the store is in use and is being copied. `pausing`: the switch is under way, so nobody may write. `moved`: the other store
   * has replaced this one. `receiving`: this is the new store, which is not complete yet.
   */
  readonly state: 'copying' | 'pausing' | 'moved' | 'receiving'
  /** The id of the move, the same in both stores. */
  readonly moveId: string
  /** The other store's name in messages. */
  readonly peer: string
  /** The address of the other store: a path, or the encrypted address of a database. */
  readonly address: string
  /** When the move began; after the switch, the time of the switch. */
  readonly atMs: number
  /** The replica that moves the store. */
  readonly replicaId: number
}

export type MoveSide = Omit<MoveMark, 'state'>

/** The table of the mark exists only while a move needs it. */
export const MARK_TABLE = 'moving'

export const MARK_COLUMNS = 'state, move_id, peer, address, at_ms, replica_id'

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

/** Returns the values of a mark in the order of `MARK_COLUMNS`. */
export function encodeMark({ state, moveId, peer, address, atMs, replicaId }: MoveMark): [string, string, string, string, number, number] {
  return [state, moveId, peer, address, atMs, replicaId]
}

/** Throws if a store cannot be used because of a move. `name` names the store in the message. */
export function refuseMoved(mark: MoveMark | null, name: string): void {
  if (mark === null || mark.state === 'copying' || mark.state === 'pausing') return
  if (mark.state === 'receiving')
    throw new Error(
      `store: ${name} holds a part of ${mark.peer}, from a move that has not ended. Nothing was changed. ` +
        `Start the relay with the store it came from and move it again, or name another store.`,
    )
  throw new Error(
    `store: ${name} was moved to ${mark.peer} at ${new Date(mark.atMs).toISOString()} and is out of use. Nothing was changed. ` +
      'Name the new store in `store`. To go back to this one, without anything that came since: parcel-relay move-store --undo.',
  )
}

export function refuseShared(name: string, cause?: unknown): never {
  throw new Error(`store: another move has begun to fill ${name}. Name another store, or wait for that move.`, { cause })
}

export function refuseTaken(name: string, table: string): never {
  throw new Error(
    `store: ${name} is not empty (it has rows in ${table}), and a move overwrites nothing. Nothing was changed. Name another store.`,
  )
}
