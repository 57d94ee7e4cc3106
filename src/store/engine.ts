import type { Params, Statement } from './statement.ts'

/** What a statement did. */
export interface Done {
  /** Rows that it inserted, changed or deleted. */
  readonly rows: number
}

/** Runs statements, within a transaction or outside. */
export interface Session {
  all<P extends Params, R>(statement: Statement<P, R>, params: P): Promise<readonly R[]>
  run<P extends Params>(statement: Statement<P, unknown>, params: P): Promise<Done>
  /** In its turn, without a word of what it did. What fails throws here or fails the transaction: nothing is committed without it. */
  enqueueWrite<P extends Params>(statement: Statement<P, unknown>, params: P): void
}

/** One connection that writes: all that differs between databases, seen from the store. */
export interface WriteEngine {
  readonly session: Session
  /** Durable when it resolves; nothing has happened when it rejects. Callers wait for one another. */
  transaction<T>(work: () => Promise<T>): Promise<T>
  /** Undoes only `work` when it rejects, within a transaction. */
  savepoint<T>(work: () => Promise<T>): Promise<T>
  /** Within a transaction: whether anybody else has written since this was last asked, so that what is remembered may not be so. */
  changedElsewhere(): boolean
  /** Whether the database failed, rather than what was asked of it. */
  isStorageFailure(error: unknown): boolean
  close(): Promise<void>
}

export interface ReadEngine {
  readonly session: Session
  /** All that `work` reads through its session is of one moment. */
  snapshot<T>(work: (session: Session) => Promise<T>): Promise<T>
  /** The last number that was given to anything, as the session sees it. */
  lastSequence(session: Session): Promise<number>
  close(): Promise<void>
}
