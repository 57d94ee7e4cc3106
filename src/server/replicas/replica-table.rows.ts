import type { Concern } from '../../console/problems/concern.ts'
import type { Replica, ReplicaConfig, Role } from '../../core/domain/admin/replica.ts'
import type { Assignment, RoleChange } from './share-roles.rules.ts'

/** `serverMs`: the server's clock, epoch milliseconds. `askedMs`, `heardMs`: our monotonic clock at the request and at the answer. */
export interface TimeSample {
  readonly serverMs: number
  readonly askedMs: number
  readonly heardMs: number
}

/** Counters that rise with the commits of all replicas. */
export interface Watermarks {
  /** When the database server was started. If this changes, the server was restarted or replaced and may have lost commits. */
  readonly server: number
  /** The last sequence of the feed. */
  readonly sequence: number
  /** Counts changes of endpoints. */
  readonly endpoints: number
  /** Counts changes of replicas and roles. */
  readonly roles: number
  /** Counts changes of the waiting deliveries by operators, jobs and joins of parcels. */
  readonly orders: number
  /** Whether nobody may write, because the store was moved or is about to be. */
  readonly isMoving: boolean
}

export interface NewReplica extends ReplicaConfig {
  readonly name: string
  readonly version: string
  readonly ttlMs: number
  /** When the replica's config took effect, if the replica joins again under a new id; null: the config takes effect now. */
  readonly configuredAtMs: number | null
}

/** The replicas that share a store, and the roles they hold. Times are epoch milliseconds of the store's clock. */
export interface ReplicaTable {
  /** Adds a replica with a lease of `ttlMs`. Rejects if this replica and another live one could not decrypt each other's secrets. */
  register(replica: NewReplica): Promise<{ readonly id: number; readonly nowMs: number }>
  /**
   * Renews a lease. `lapsed`: how many leases of other replicas have run out. Null: this replica was declared dead, or the server has lost
   * the commit that registered it. The same statement stores the concerns, which the other replicas read with `list`.
   */
  renew(id: number, ttlMs: number, concerns: readonly Concern[]): Promise<{ readonly nowMs: number; readonly lapsed: number } | null>
  look(): Promise<Watermarks>
  /**
   * First declares replicas dead whose leases have run out. Then `decide` changes the roles of the replica `id`, while nobody else can change
   * roles. Resolves with the new roles of `id`.
   */
  changeRoles(id: number, decide: (assignment: Assignment) => RoleChange): Promise<readonly Role[]>
  /** Saves a new config. Resolves with the time at which the config took effect; null: the replica was declared dead. Rejects like `register`. */
  configure(id: number, config: ReplicaConfig): Promise<number | null>
  list(): Promise<readonly Replica[]>
  /** Removes a replica that stops. Other replicas may then take its roles. */
  remove(id: number): Promise<void>
  close(): Promise<void>
}
