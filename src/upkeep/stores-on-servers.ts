import type { OperatorAction } from '../core/domain/admin/operator-action.ts'
import type { RestoreRecord } from '../core/domain/admin/restore.ts'
import type { KeptTombstones } from '../core/domain/history/erased.ts'
import type { Engine } from '../core/store/contract.ts'
import type { StoreMoves } from './moving/store-moves.rows.ts'

/** What this wing needs of stores on a server, beside what every engine does. The wing of servers offers it. An `address` is the URL of a database. */
export interface ServerStores {
  readonly engine: Engine
  readonly moves: StoreMoves
  /** Returns the name of a database without the password, for messages. */
  nameOf(address: string): string
  /** Finds out whether a relay could use a database, without changing anything. If not, rejects with the reasons and their remedies. */
  inspect(address: string): Promise<InspectedDatabase>
  /** Whether a server cannot be reached now. */
  isAway(error: unknown): boolean
  /** Marks a database as restored, after the server's own tools have restored it. */
  markRestored(order: MarkOrder): Promise<RestoreRecord>
}

/** Commands load it only when they work on a store. */
export type LoadServerStores = () => Promise<ServerStores>

export interface InspectedDatabase {
  /** `none`: the relay's tables do not exist yet. */
  readonly schema: 'none' | 'older' | 'current'
  /** The number of relays that use the database now. */
  readonly replicas: number
  /** The encrypted key of the tombstones; null: nothing was erased, or the tables are not those of this version. */
  readonly tombstoneKey: string | null
}

export interface MarkOrder {
  readonly address: string
  /** The highest sequence that any reader or endpoint has seen. */
  readonly last: number
  /**
   * The tombstones of what was erased after the moment to which the database was restored; null: nothing was erased, or erased data may
   * come back.
   */
  readonly tombstones: KeptTombstones | null
  readonly nowMs: number
  readonly by: OperatorAction['by']
}
