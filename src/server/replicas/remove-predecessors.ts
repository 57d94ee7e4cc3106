import type { Relay } from '../../core/flow/relay.ts'
import type { ReplicaTable } from './replica-table.rows.ts'

export interface ReplicaProcess {
  readonly host: string
  readonly pid: number
}

export interface RemovePredecessorsPorts extends Pick<Relay, 'clock'> {
  readonly table: Pick<ReplicaTable, 'list' | 'remove'>
  /** Whether a process of this machine runs. */
  readonly isRunning: (pid: number) => boolean
}

/** Returns the name under which other replicas and operators see a replica. */
export function nameReplica({ host, pid }: ReplicaProcess): string {
  return `${host}/${pid}`
}

/**
 * Removes replicas of this machine whose process is gone. So a relay that starts again after a kill does not wait until the lease of the
 * killed process runs out. If another machine has the same name, its replica is removed by mistake, and joins again within a second.
 */
export async function removePredecessors({ table, clock, isRunning }: RemovePredecessorsPorts, self: ReplicaProcess): Promise<void> {
  const beganMs = clock.now() - clock.monotonic()
  for (const { id, name, startedAtMs } of await table.list()) {
    const [host, pid] = name.split('/')
    if (host !== self.host || pid === undefined) continue
    // In a container the killed process may have had the same id as this one. Then only the time of the start tells them apart.
    if (Number(pid) === self.pid ? startedAtMs < beganMs : !isRunning(Number(pid))) await table.remove(id)
  }
}
