/** Work that only one replica may do at a time. The replica with the dispatcher role of an endpoint delivers to it. */
export type Role = 'poller' | 'janitor' | `dispatcher/${string}`

const DISPATCHER = 'dispatcher/'

export function dispatcherOf(endpointId: string): Role {
  return `${DISPATCHER}${endpointId}`
}

/** Returns the id of the endpoint of a dispatcher role; null: it is another role. */
export function endpointOf(role: Role): string | null {
  return role.startsWith(DISPATCHER) ? role.slice(DISPATCHER.length) : null
}

/** One of the relays that share a store. A wing adds to this interface what a replica tells the others. */
export interface Replica {
  /** A replica gets a new id at each start, and also when it comes back after it was declared dead. */
  readonly id: number
  /** The name of its host and its process id. */
  readonly name: string
  readonly version: string
  /** A hash of the settings. Replicas with the same settings have the same fingerprint. The settings `listen` and `log` do not count. */
  readonly configFingerprint: string
  /** The names of its at-rest keys; empty: it uses a key file. */
  readonly atRestKeys: readonly string[]
  readonly startedAtMs: number
  readonly lastSeenAtMs: number
  readonly roles: readonly Role[]
}

/** What other replicas learn about a replica's config. */
export interface ReplicaConfig {
  readonly configFingerprint: string
  /** The names of endpoints. */
  readonly endpoints: readonly string[]
  /** The names of the keys at rest; the first key encrypts, all keys decrypt. */
  readonly atRestKeys: readonly string[]
}
