import { sql } from 'kysely'
import pg, { type Pool } from 'pg'
import { StorageFailure } from '../../../core/domain/errors.ts'
import { parseStored } from '../../../core/domain/json-body.ts'
import type { Session } from '../../../core/store/engine.ts'
import { type Standing, standingColumns } from '../counter.ts'
import { rawStatement } from '../postgres-dialect.ts'

/** A replica's row, and the state of the server. */
export interface ReplicaStanding extends Standing {
  readonly started_at_ms: number
  /** When the replica was last seen, before this statement. */
  readonly seen_at_ms: number
  /** The new `seen_at_ms` that the statement writes; absent: the statement only reads. */
  readonly now_ms?: number
}

/**
 * The id of the server's timeline (PostgreSQL's word for a branch of its history). A server begins a new timeline when it is promoted, or
 * restored to a point in time. Null: the server cannot tell. (It may be another database that is compatible with PostgreSQL.)
 */
export type Timeline = string | null

const TIMELINE = 'select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline'
const readTimeline = rawStatement()(() => sql.raw<{ timeline: string }>(TIMELINE))

export async function timelineOf(pool: Pool): Promise<Timeline> {
  try {
    return (await pool.query<{ timeline: string }>(TIMELINE)).rows[0]?.timeline ?? null
  } catch (error) {
    if (error instanceof pg.DatabaseError && CANNOT_SAY.includes((error.code ?? '').slice(0, 2))) return null
    throw error
  }
}

/** Classes of errors from a server that cannot tell its timeline: feature not supported, not in the required state, syntax error. */
const CANNOT_SAY = ['0A', '55', '42']

/** Reads the timeline, in a transaction that fails if the server cannot tell. */
export async function timelineIn(session: Pick<Session, 'all'>): Promise<Timeline> {
  const [row] = await session.all(readTimeline, {})
  return row?.timeline ?? null
}

/** The columns of a `ReplicaStanding`, for a statement that reads `replica` and the row `sequence` of `counter`. */
const replicaStanding = sql<ReplicaStanding>`replica.started_at_ms, replica.seen_at_ms, ${standingColumns}`

/**
 * Notices that a server has lost commits that a replica wrote or read. After such a loss, another replica may have the same roles. All
 * parts of a replica share one object, so that they agree.
 */
export interface LostCommits {
  /**
   * Call it when a statement that reads the replica's row is sent, and call the returned function with that row. The function resolves with
   * true if the server has lost commits of this replica, now or earlier. It calls `timeline` only at first and after the server changed or restarted.
   */
  asking(replicaId: number): (found: ReplicaStanding, timeline: () => Promise<Timeline>) => Promise<boolean>
}

interface Known extends ReplicaStanding {
  readonly replicaId: number
  readonly timeline: Timeline
}

/**
 * Makes the watch for lost commits. A restart alone loses nothing. Commits are lost if the counter has gone back, or if the replica's row is
 * of another registration. After a restart, they are also lost if the timeline has changed or is unknown, or if the row's time
 * has gone back. Example: this replica saw sequence 60, files with sequence 50 are restored, and other replicas raise it to 70. If the timeline
 * is the same, only the row's time shows the loss.
 */
export function createLostCommits(): LostCommits {
  let known: Known | null = null
  let lostId: number | null = null

  return {
    asking(replicaId) {
      // Compare with the state that was known when the statement was sent, because answers on several connections overtake one another.
      const before = known?.replicaId === replicaId ? known : null
      return async (found, readTimelineNow) => {
        if (replicaId === lostId) return true
        const isSameServer = before?.server === found.server
        const timeline = isSameServer ? before.timeline : await readTimelineNow()
        if (before !== null && hasLost(before, { ...found, timeline })) {
          lostId = replicaId
          return true
        }
        const isNewer = known?.server === found.server && known.sequence < found.sequence
        if (known === before || known?.replicaId !== replicaId || isNewer)
          known = { ...found, seen_at_ms: found.now_ms ?? found.seen_at_ms, replicaId, timeline }
        return false
      }
    },
  }
}

function hasLost(before: Omit<Known, 'replicaId'>, found: Omit<Known, 'replicaId'>): boolean {
  if (found.started_at_ms !== before.started_at_ms || found.sequence < before.sequence) return true
  if (found.server === before.server) return false
  return found.timeline === null || found.timeline !== before.timeline || found.seen_at_ms < before.seen_at_ms
}

const proveAlive = rawStatement<{ id: number }>()(
  (p) => sql<ReplicaStanding>`
    select ${replicaStanding} from replica join counter on counter.name = 'sequence'
    where replica.id = ${p.id}::bigint for key share of replica`,
)
const proveRole = rawStatement<{ id: number; role: string }>()(
  (p) => sql<ReplicaStanding>`
    select ${replicaStanding} from replica join role on role.replica_id = replica.id join counter on counter.name = 'sequence'
    where replica.id = ${p.id}::bigint and role.name = ${p.role}::text for key share of replica`,
)

interface Proof {
  readonly replicaId: number
  /** `any`: no role is checked. */
  readonly role: 'poller' | 'janitor' | 'any'
  readonly lostCommits: LostCommits
  readonly timeline: () => Promise<Timeline>
}

/**
 * Fails if this replica was declared dead or does not hold the role, or if the server has lost commits. Otherwise it locks the replica's row. To
 * declare the replica dead, another replica has to delete that row, and so waits until the transaction ends. Renewing the lease does not wait.
 */
export async function proveHeld(session: Session, { replicaId, role, lostCommits, timeline }: Proof): Promise<void> {
  const hasLost = lostCommits.asking(replicaId)
  const [found] = await (role === 'any' ? session.all(proveAlive, { id: replicaId }) : session.all(proveRole, { id: replicaId, role }))
  if (found === undefined) throw new StorageFailure('this replica was declared dead, and others have its roles')
  if (await hasLost(found, timeline)) throw new StorageFailure('the server has lost commits: other replicas may have the roles of this one')
}

/** Parses a list of names that a replica's row stores as JSON. */
export function namesIn(json: string): readonly string[] {
  const names = parseStored(json)
  return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : []
}
