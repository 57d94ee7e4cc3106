import type { Config } from '../../core/config/config.ts'
import type { Replica } from '../../core/domain/admin/replica.ts'
import { systemCode } from '../../core/domain/errors.ts'
import type { Clock, Log } from '../../core/flow/ports.ts'
import type { Relay } from '../../core/flow/relay-part.ts'
import { startRepeating } from '../../core/runtime/schedule.ts'
import { systemClock } from '../../core/runtime/system-clock.ts'
import type { LessonTable } from '../../core/store/polling/shared-carrier.ts'
import { type Membership, PROCESS, REPLICA, replicaConfigOf } from '../../core/wiring/replica-name.ts'
import type { LostCommits } from '../postgres/admin/lost-commits.ts'
import { openReplicaTable } from '../postgres/admin/replica-table.ts'
import type { ServerWatch } from '../postgres/server-watch.ts'
import { createReplicaChanges, type Duties, joinReplicas, type ReplicaChangeListener } from './membership.ts'
import type { ReplicaTable, TimeSample } from './replica-lease.ts'

/** A replica that was not seen for this long is declared dead. */
const TTL_MS = 5000
const RENEW_EVERY_MS = 1000
/** How often this replica looks for commits of other replicas. */
const LOOK_EVERY_MS = 100
const TIDY_EVERY_MS = 60_000
/** How long the server may take to answer. It is short, so that the replica can ask again before its lease lapses. */
const ANSWER_TIMEOUT_MS = 1500

export interface Replicas extends Membership {
  /** Begins to take roles, and to tell the listener what other replicas have changed. */
  begin(duties: Duties, listener: ReplicaChangeListener): void
  /** Whether this replica has a lease. While it has one, the store is not moved without it. */
  isLive(): boolean
  leave(): Promise<void>
}

export interface Joined {
  readonly replicas: Replicas
  /** The server's clock. */
  readonly clock: Clock
  readonly lessons: LessonTable
}

export interface SharedWithStore {
  readonly watch: ServerWatch
  readonly lostCommits: LostCommits
}

/** Joins the replicas that share a database, and begins to renew the lease. */
export async function openReplicas(url: string, shared: SharedWithStore, config: Config, log: Log): Promise<Joined> {
  const table = openReplicaTable(url, { answerTimeoutMs: ANSWER_TIMEOUT_MS, ...shared })
  let clock: ServerClock | null = null
  const onServerTime = (sample: TimeSample) => {
    clock ??= createServerClock(systemClock.monotonic, sample)
    clock.adjust(sample)
  }
  const ports = { table, clock: systemClock, log, onServerTime }
  const membership = await joinReplicas(ports, { ...REPLICA, ttlMs: TTL_MS }, replicaConfigOf(config)).catch(async (error: unknown) => {
    await table.close()
    throw error
  })
  if (clock === null) throw new Error('a replica joined without learning the time of the server')
  await removePredecessors({ table, clock, isRunning }, PROCESS).catch((err: unknown) =>
    log.debug({ err }, 'replicas that are gone could not be removed; they lapse'),
  )
  const renewing = startRepeating(membership.renew, RENEW_EVERY_MS)
  const lapsing = startRepeating(async () => membership.check(), LOOK_EVERY_MS)
  const looking: ReturnType<typeof startRepeating>[] = []
  let hasLeft = false
  return {
    clock,
    lessons: table.lessons,
    replicas: {
      ...membership,
      begin(duties, listener) {
        membership.start(duties)
        looking.push(startRepeating(createReplicaChanges({ table, membership, listener }), LOOK_EVERY_MS))
        // Some work falls due only a while after a replica has died. No counter shows that, so look regularly.
        looking.push(startRepeating(async () => listener.replicasChanged(), TIDY_EVERY_MS))
      },
      isLive: () => !hasLeft && membership.isValid(),
      async leave() {
        hasLeft = true
        for (const one of [renewing, lapsing, ...looking]) one.stop()
        await membership.leave().catch((err: unknown) => log.debug({ err }, 'the replica could not leave; the others declare it dead'))
        await table.close()
      },
    },
  }
}

/** Whether a process runs on this machine. The process may belong to another user. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return systemCode(error) !== 'ESRCH'
  }
}

interface TidyReplicasPorts extends Pick<Relay, 'log'> {
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

interface RemovePredecessorsPorts extends Pick<Relay, 'clock'> {
  readonly table: Pick<ReplicaTable, 'list' | 'remove'>
  /** Whether a process of this machine runs. */
  readonly isRunning: (pid: number) => boolean
}

/**
 * Removes replicas of this machine whose process is gone. So a relay that starts again after a kill does not wait until the lease of the
 * killed process runs out. If another machine has the same name, its replica is removed by mistake, and joins again within a second.
 */
export async function removePredecessors({ table, clock, isRunning }: RemovePredecessorsPorts, self: typeof PROCESS): Promise<void> {
  const beganMs = clock.now() - clock.monotonic()
  for (const { id, name, startedAtMs } of await table.list()) {
    const [host, pid] = name.split('/')
    if (host !== self.host || pid === undefined) continue
    // In a container the killed process may have had the same id as this one. Then only the time of the start tells them apart.
    if (Number(pid) === self.pid ? startedAtMs < beganMs : !isRunning(Number(pid))) await table.remove(id)
  }
}

interface ServerClock extends Clock {
  /** Corrects the clock by one reading of the server's time. */
  adjust(sample: TimeSample): void
}

/**
 * Creates a clock that shows the time of the database server, because the clocks of replicas may differ, and may be set while they run. Between
 * samples it advances with the monotonic clock. Each sample gives an upper and a lower limit for the server's time. The clock is corrected only
 * if it is outside of these limits.
 */
export function createServerClock(monotonic: () => number, first: TimeSample): ServerClock {
  let aheadMs = first.serverMs - (first.askedMs + first.heardMs) / 2
  return {
    now: () => Math.floor(monotonic() + aheadMs),
    monotonic,
    adjust({ serverMs, askedMs, heardMs }) {
      // Add 1, because the server rounds down to whole milliseconds.
      aheadMs = Math.min(serverMs + 1 - askedMs, Math.max(serverMs - heardMs, aheadMs))
    },
  }
}
