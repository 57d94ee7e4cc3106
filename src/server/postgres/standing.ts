import { sql } from 'kysely'

/** Which database server answers, and how far its counter is. */
export interface Standing {
  /** Changes when a standby is promoted, a backup is restored or the server is restarted: see `SERVER`. */
  readonly server: number
  /** The last sequence that was committed. */
  readonly sequence: number
}

/**
 * An expression that identifies a server, in a statement that reads `counter`: the time of the server's start, in microseconds, plus the id
 * of the table. A promoted standby and restored files have another start time. Tables that are restored while the server runs have other ids.
 */
export const SERVER = '(extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint + counter.tableoid::bigint'

/** The columns of a standing, for a statement that reads the row `sequence` of `counter` anyway. */
export const standingColumns = sql<Standing>`${sql.raw(SERVER)} as server, counter.value as sequence`

/** Notices that cached data may be wrong: a different server answers, or the counter has gone back. */
export interface StandingWatch {
  /** Call it when the statement is sent, and call the returned function with the answer. True: cached data may be wrong. */
  asking(): (found: Standing) => boolean
}

export function createStandingWatch(): StandingWatch {
  let last: Standing | null = null
  return {
    asking() {
      // Compare with the state when the statement was sent, because an answer on another connection may overtake this one.
      const floor = last
      return (found) => {
        const isBack = floor !== null && (found.server !== floor.server || found.sequence < floor.sequence)
        // An answer on another connection may have shown the same change already.
        const isNews = isBack && (last === floor || last?.server !== found.server || found.sequence < last.sequence)
        if (isNews || last === null || (last.server === found.server && found.sequence > last.sequence)) last = found
        return isNews
      }
    },
  }
}
