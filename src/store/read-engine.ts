import type { Session } from './engine.ts'
import type { Contents } from './history/contents.ts'

export interface ReadEngine {
  readonly session: Session
  /** Runs `work` with a session whose reads all come from one snapshot of the database. */
  snapshot<T>(work: (session: Session) => Promise<T>): Promise<T>
  /** Returns the cache of contents for reads within a snapshot. Call it before anything else is read. */
  contents(snapshot: Session): Contents
  /** The last assigned sequence, as the session sees it. */
  lastSequence(session: Session): Promise<number>
  close(): Promise<void>
}
