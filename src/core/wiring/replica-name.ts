import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { VERSION } from '../../package-files.ts'
import type { Config } from '../config/config.ts'
import { revealAll } from '../config/secret.ts'
import type { Replica, ReplicaConfig, Role } from '../domain/admin/replica.ts'
import { OPERATOR_NAME } from '../domain/delivery/operator-event.ts'
import { nameKey } from '../ops/vault.ts'

/** Tells which roles this relay holds among the replicas that share its store. */
export interface Membership {
  id(): number
  /** Whether this replica holds the role now. Call it before each attempt and each poll. */
  holds(role: Role): boolean
  /** The endpoints to which this replica delivers; null: all. */
  endpoints(): readonly string[] | null
  delivers(endpointId: string): boolean
  /** Rises when this replica was declared dead and has lost all its roles. Work that began in an earlier term must not save its results. */
  term(): number
  /** Returns a signal that is aborted when the lease runs out. Get a new signal for each poll. */
  signal(): AbortSignal
  list(): Promise<readonly Replica[]>
  /** How many replicas there were when the roles were last shared, this one included. */
  count(): number
  /** Publishes a reloaded config to the other replicas. */
  configure(config: ReplicaConfig): Promise<void>
  /** From now on tells the other replicas what only this one can know. Called every second. */
  tell(concerns: () => Replica['concerns']): void
}

/** The process of this relay. */
export const PROCESS = { host: hostname(), pid: process.pid }

/** How other replicas and operators name this relay. */
export const REPLICA = { name: nameReplica(PROCESS), version: VERSION }

/** Returns the name under which other replicas and operators see a replica. */
export function nameReplica({ host, pid }: typeof PROCESS): string {
  return `${host}/${pid}`
}

export function replicaConfigOf({
  listen: _listen,
  log: _log,
  warnings: _warnings,
  conflicts: _conflicts,
  ...shared
}: Config): ReplicaConfig {
  const text = JSON.stringify(revealAll(shared))
  const names = shared.endpoints.map(({ name }) => name)
  return {
    configFingerprint: createHash('sha256').update(text).digest('hex').slice(0, 12),
    endpoints: shared.operator === null ? names : [...names, OPERATOR_NAME],
    atRestKeys: shared.secrets.atRestKeys.map((key) => nameKey(Buffer.from(key.reveal(), 'base64'))),
  }
}
