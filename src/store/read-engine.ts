import type { Session } from './engine.ts'
import type { Contents } from './history/contents.ts'

export interface ReadEngine {
  readonly session: Session
  /** Everything `work` reads through its session comes from one snapshot of the database. */
  snapshot<T>(work: (session: Session) => Promise<T>): Promise<T>
  /** What is remembered of the words that are stored, for reading within a snapshot; to be asked for before anything is read. */
  contents(snapshot: Session): Contents
  /** The last assigned sequence, as the session sees it. */
  lastSequence(session: Session): Promise<number>
  close(): Promise<void>
}
