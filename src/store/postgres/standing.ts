import { sql } from 'kysely'

/** Which server answers, and how far its counter is. */
export interface Standing {
  /** Another after a standby was promoted, a backup was restored or the server was restarted: see `SERVER`. */
  readonly server: number
  /** The last number that was given. */
  readonly sequence: number
}

/**
 * Tells one server from another, in a statement that reads `counter`: when it was started, in microseconds, and which table that is. A standby that was promoted
 * and files that were put back are of another process; tables that were restored while the server ran are others.
 */
export const SERVER = '(extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint + counter.tableoid::bigint'

/** The columns of a standing, in a statement that reads the row `sequence` of `counter` anyway. */
export const standingColumns = sql<Standing>`${sql.raw(SERVER)} as server, counter.value as sequence`

/** Notices that a server does not hold any more what was read from it: it is another one, or its counter has gone back. */
export interface StandingWatch {
  /** To be called when the statement is sent. The result is to be called with its answer, and tells whether what is remembered may be wrong. */
  asking(): (found: Standing) => boolean
}

export function createStandingWatch(): StandingWatch {
  let last: Standing | null = null
  return {
    asking() {
      // Compared with what was known when it was sent, because answers on several connections overtake one another.
      const floor = last
      return (found) => {
        const isBack = floor !== null && (found.server !== floor.server || found.sequence < floor.sequence)
        // Another answer may have told the same already.
        const isNews = isBack && (last === floor || last?.server !== found.server || found.sequence < last.sequence)
        if (isNews || last === null || (last.server === found.server && found.sequence > last.sequence)) last = found
        return isNews
      }
    },
  }
}
