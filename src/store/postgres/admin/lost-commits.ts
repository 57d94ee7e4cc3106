import { sql } from 'kysely'
import pg, { type Pool } from 'pg'
import type { Session } from '../../engine.ts'
import { rawStatement } from '../raw-statement.ts'
import { type Standing, standingColumns } from '../standing.ts'

/** A replica's row, and the standing of the server that holds it. */
export interface ReplicaStanding extends Standing {
  readonly started_at_ms: number
  /** When the replica was last seen, as of before the statement. */
  readonly seen_at_ms: number
  /** When it is seen by the statement itself; absent: the statement does not write it. */
  readonly now_ms?: number
}

/**
 * The branch of its history that a server writes: whatever is promoted or restored to a point in time begins a new one. Null: the server cannot say, as
 * relatives of PostgreSQL cannot.
 */
export type Timeline = string | null

const TIMELINE = 'select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline'
const readTimeline = rawStatement()(() => sql.raw<{ timeline: string }>(TIMELINE))

export async function timelineOf(pool: Pool): Promise<Timeline> {
  try {
    return (await pool.query<{ timeline: string }>(TIMELINE)).rows[0]?.timeline ?? null
  } catch (error) {
    // A function that is not there, or not supported.
    if (error instanceof pg.DatabaseError && CANNOT_SAY.includes((error.code ?? '').slice(0, 2))) return null
    throw error
  }
}

/** Classes of errors: not supported, not in this state, and wrong words. */
const CANNOT_SAY = ['0A', '55', '42']

/** The timeline, in a transaction that fails if the server cannot say. */
export async function timelineIn(session: Pick<Session, 'all'>): Promise<Timeline> {
  const [row] = await session.all(readTimeline, {})
  return row?.timeline ?? null
}

/** The standing that goes with a row of `replica`, in a statement that joins the row `sequence` of `counter`. */
export const replicaStanding = sql<ReplicaStanding>`replica.started_at_ms, replica.seen_at_ms, ${standingColumns}`

/**
 * Notices that a server has lost what a replica wrote or read: what the replica claimed may be another's now. All that ask on behalf of one replica share one
 * of these; otherwise one would refuse what another goes on with.
 */
export interface LostCommits {
  /**
   * Call it when the statement is sent, and the function it returns with the answer. That resolves with whether the replica of this number has lost what it
   * holds; once it has, it stays so. `timeline` is called only after the server was restarted.
   */
  asking(replicaId: number): (found: ReplicaStanding, timeline: () => Promise<Timeline>) => Promise<boolean>
}

interface Known extends ReplicaStanding {
  readonly replicaId: number
  readonly timeline: Timeline
}

/**
 * A server that was only restarted has lost nothing. It has lost commits if it writes another timeline, or if its counter or the replica's own row has gone
 * back: files may be restored without a new timeline, and others may have raised the counter again before this replica asks.
 */
export function createLostCommits(): LostCommits {
  let known: Known | null = null
  let lostId: number | null = null

  return {
    asking(replicaId) {
      // Compared with what was known when it was sent, because answers on several connections overtake one another.
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
