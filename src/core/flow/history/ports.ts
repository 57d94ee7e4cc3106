import type { BatchReport, Incoming, RecordOutcome } from '../../domain/history/recording.ts'

/** An encoded answer. It is cached until the facts about its parcel change, or the parcel starts or stops being polled. */
export interface CachedAnswer {
  readonly parcelId: number
  /** The parcel's version when the answer was read from the store. */
  readonly version: number
  readonly body: Buffer
  readonly etag: string
  readonly contentLanguage: string
  /** When a push or poll last reported on the parcel. The header `Age` is computed from it whenever the answer is sent. */
  readonly lastSeenAtMs: number | null
}

export interface AnswerCache {
  /** Returns the cached answer to a question; undefined: there is none, or this process has since changed the parcel. */
  get(key: string): CachedAnswer | undefined
  /** Returns the present position in the sequence of commits. Call it before you read the store for an answer. */
  mark(): bigint
  /** Caches an answer that was read after `mark` was taken. */
  set(key: string, answer: CachedAnswer, mark: bigint): void
}

/** Records observations. The writer may run on another thread. */
export interface Recorder {
  /** Resolves when the observation is durable. Throws `storage_unavailable` if its batch could not be committed. */
  submit(incoming: Incoming): Promise<RecordOutcome>
  /** The number of observations that are not committed yet. */
  pending(): number
  /** Resolves when no observation waits and no commit is running. After this call, failed commits are not tried again. */
  drained(): Promise<void>
}

/** The verbs of history that write; see `WriteSide`. */
export interface HistoryWrites {
  /**
   * Records a batch in one transaction. If this resolves, every observation is durable. If it rejects, no observation was recorded. An
   * observation that cannot be recorded is quarantined, and the others are recorded.
   */
  record(batch: readonly Incoming[]): Promise<BatchReport>
}
