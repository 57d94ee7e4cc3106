import type { Replica } from '../../core/domain/admin/replica.ts'
import type { Relay } from '../../core/flow/relay.ts'
import type { Membership } from './membership.ts'
import type { ReplicaTable } from './replica-table.rows.ts'

export interface TidyReplicasPorts extends Pick<Relay, 'log'> {
  readonly replicas: Pick<Membership, 'holds' | 'id'> & { list(): Promise<readonly Pick<Replica, 'name' | 'configFingerprint'>[]> }
  /** `restore`: resumes the endpoints of this config. `removeUnnamed`: pauses or removes endpoints that no config names. */
  readonly delivery: { restore(): Promise<unknown>; removeUnnamed(): Promise<unknown> }
  /** Removes what a killed move has left in the store. */
  readonly clearMoves: () => Promise<void>
}

/**
 * Creates the work that a replica does when replicas have come or gone. It resumes the endpoints of its config if they may have been
 * paused, pauses or removes endpoints that no config names any more, and warns of replicas with different configs. A failure is logged, and
 * the work is tried again at the next change.
 */
export function createTidyReplicas({ replicas, delivery, clearMoves, log }: TidyReplicasPorts): () => Promise<void> {
  let warnedOf = ''
  let joinedAs = replicas.id()
  const tidy = async () => {
    const id = replicas.id()
    if (id !== joinedAs) {
      // This replica was declared dead and has joined again. In between, its endpoints may have been paused.
      await delivery.restore()
      joinedAs = id
    }
    const fingerprints = new Map((await replicas.list()).map(({ name, configFingerprint }) => [name, configFingerprint]))
    const seen = [...new Set(fingerprints.values())].sort().join()
    if (seen.includes(',') && seen !== warnedOf) {
      log.warn({ replicas: Object.fromEntries(fingerprints) }, 'replicas run with different configs; give all of them the same')
    }
    warnedOf = seen
    await delivery.removeUnnamed()
    if (replicas.holds('janitor')) await clearMoves()
  }
  return () =>
    tidy().catch((err: unknown) => log.warn({ err }, 'cannot look at the other replicas; the relay tries again when one changes'))
}

interface ReplicaProcess {
  readonly host: string
  readonly pid: number
}

interface RemovePredecessorsPorts extends Pick<Relay, 'clock'> {
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
