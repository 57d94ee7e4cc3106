import type { Clock } from '../../ports.ts'
import type { ReplicaTable } from '../ports.ts'

/** The process of a replica. */
export interface ReplicaProcess {
  readonly host: string
  readonly pid: number
}

export interface RemovePredecessorsPorts {
  readonly table: Pick<ReplicaTable, 'list' | 'remove'>
  readonly clock: Clock
  /** Whether a process of this machine runs. */
  readonly isRunning: (pid: number) => boolean
}

/** The name under which other replicas and operators see a replica. */
export function nameReplica({ host, pid }: ReplicaProcess): string {
  return `${host}/${pid}`
}

/**
 * Removes replicas of this machine whose process is gone. So a relay that starts again after a kill need not wait for the lease of its
 * predecessor. If another machine has the same name, its replica is declared dead by mistake, and joins again within a second.
 */
export async function removePredecessors({ table, clock, isRunning }: RemovePredecessorsPorts, self: ReplicaProcess): Promise<void> {
  const beganMs = clock.now() - clock.monotonic()
  for (const { id, name, startedAtMs } of await table.list()) {
    const [host, pid] = name.split('/')
    if (host !== self.host || pid === undefined) continue
    // In a container every start may have the same process id. Then only the time of the start tells them apart.
    if (Number(pid) === self.pid ? startedAtMs < beganMs : !isRunning(Number(pid))) await table.remove(id)
  }
}
