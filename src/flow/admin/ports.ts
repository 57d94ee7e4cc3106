import type { BackupState, MadeBackup } from '../../domain/admin/backup.ts'
import type { ClockDoubt, OtherClocks } from '../../domain/admin/clock-record.ts'
import type { EndedSession } from '../../domain/admin/ended-session.ts'
import type { Job, JobTask, UnendedJob } from '../../domain/admin/job.ts'
import type { LeftStore } from '../../domain/admin/left-store.ts'
import type { ActionPage, ActionQuery, Audited, FormerOrder, ListedTarget, OperatorAction } from '../../domain/admin/operator-action.ts'
import type { FilteredCount, InspectedParcel, ParcelFilter, ParcelPage, ParcelQuery, StoreCounts } from '../../domain/admin/parcel-list.ts'
import type { Concern } from '../../domain/admin/problems/concern.ts'
import type { QuarantineCount, Trouble, TroubleBegun, TroubleEnded } from '../../domain/admin/problems/trouble.ts'
import type { Assignment, Replica, Role, RoleChange } from '../../domain/admin/replica.ts'
import type { RestoreRecord } from '../../domain/admin/restore.ts'
import type { Retention, RetentionState } from '../../domain/admin/retention.ts'
import type { Tally, TallyAddition, TallyFlush, TallySpan } from '../../domain/admin/tally.ts'
import type { TokenKeyRotation, TokenKeys } from '../../domain/admin/token-keys.ts'
import type { OperatorEvent, OperatorEventQuery, ToldEvent } from '../../domain/delivery/operator-event.ts'
import type { BatchReport } from '../../domain/history/recording.ts'
import type { AgedReads, RetentionTx } from './retention/retention-ports.ts'

/** The verbs of admin that write; see `WriteSide`. Times are epoch milliseconds. */
export interface AdminWrites {
  /** The keys that sign the relay's tokens. Makes the first key if there is none yet. */
  tokenKeys(): Promise<TokenKeys>
  rotateTokenKeys(request: TokenKeyRotation & Audited): Promise<TokenKeys>
  /** Queues a job; null: too many jobs have not ended. */
  startJob(request: Audited & { readonly task: JobTask; readonly by: string; readonly nowMs: number }): Promise<Job | null>
  /**
   * Does a batch of the oldest unended job that is no move or backup. `hasWorked`: there was such a job. `isDone`: no such job is left. The store
   * keeps the progress, so the work continues after a restart.
   */
  workOnJobs(request: { readonly limit: number; readonly nowMs: number }): Promise<{
    readonly hasWorked: boolean
    readonly isDone: boolean
    /** Whether parcels were retired, which adds events to the feed. */
    readonly hasRetired: boolean
    /** The reprocessed pushes; null: the job was of another kind. */
    readonly report: BatchReport | null
    /** Null: the job was no rebuild. */
    readonly rebuilt: RebuildNews | null
  }>
  /** Saves the progress of a move or a backup. `isWanted`: the job was not cancelled. */
  noteProgress(request: { readonly jobId: number; readonly done: number; readonly nowMs: number }): Promise<{ readonly isWanted: boolean }>
  /**
   * Copies the store to a file. Others may write to the store meanwhile, and the copy includes what they have written. `sequence`: the last
   * sequence of the feed when copying began. Rejects if copying is stopped or fails. Throws `not_backed_up` for a store on a server.
   */
  copyStore(request: { readonly file: string }): Promise<{ readonly sequence: number }>
  /** In pages of the store; null: no copy is being made. */
  copyProgress(): Promise<{ readonly done: number; readonly total: number } | null>
  /** Makes `copyStore` reject. */
  stopCopy(): Promise<void>
  backupState(): Promise<BackupState>
  /** Saves the result of a backup, ends its job, and notifies operators if backups begin to fail or work again. Returns whether it notified them. */
  endBackup(end: BackupEnd & Posted): Promise<boolean>
  /** Notifies operators of new restores. Resolves with their number. */
  tellRestores(request: { readonly nowMs: number }): Promise<number>
  /** Ends the jobs of backups that were interrupted because the relay was stopped or killed. */
  endLeftBackups(nowMs: number): Promise<void>
  /** Cancels a job. What it has done stays done. A job that has ended does not change. Null: there is no such job. */
  cancelJob(request: Audited & { readonly jobId: number; readonly nowMs: number }): Promise<Job | null>
  /** Stores an operator event, and the order (`action`) that caused it. Queues the event if the config names an endpoint for operator events. */
  recordOperatorEvent(event: OperatorEvent, nowMs: number, given?: Audited & Posted): Promise<void>
  /** Notifies operators that a trouble has begun, unless they were notified of it before. Returns whether it notified them now. */
  beginTrouble(begun: TroubleBegun & OfRole & Posted): Promise<boolean>
  /** Notifies operators that a trouble is over, if they were notified that it had begun. Returns whether it notified them now. */
  endTrouble(ended: TroubleEnded & OfRole): Promise<boolean>
  /** Notifies operators of jobs that have ended and of pushes that were quarantined. Resolves with the number of events. */
  tellOperators(request: { readonly nowMs: number }): Promise<number>
  /** Logs a session of the portal out, for all replicas. */
  endSession(ended: EndedSession): Promise<void>
  /** Adds an order that was carried out outside the store to the audit trail. */
  recordAction(action: OperatorAction): Promise<void>
  /** Adds counts to their hours and days. A repeated flush is added once. */
  addTallies(flush: TallyFlush): Promise<void>
  /** Does a batch of the retention pass that is under way, or begins a pass that is due. `isDone`: there is nothing to do now. */
  prune(request: { readonly nowMs: number }): Promise<PruneResult>
  /** Tells the part that writes how other clocks differ from ours. Returns why our clock is doubted; null: it is not. */
  lookAtClock(others: OtherClocks): Promise<ClockDoubt | null>
  /** Changes how long data is kept, and from which age on events are not recorded. Takes effect with the next batch. */
  adjustRetention(retention: Retention): Promise<void>
}

/** How many parcels a batch of a rebuild has compared, by result. */
export interface RebuildNews {
  readonly equal: number
  /** Parcels that differ. They were not corrected, because the rebuild only compared. */
  readonly differing: number
  readonly corrected: number
  /** Parcels that could not be compared. */
  readonly left: number
  /** Whether corrections were added to the feed. */
  readonly hasChanged: boolean
}

export interface PruneResult {
  readonly isDone: boolean
  /** Whether parcels were retired, which adds events to the feed. */
  readonly hasRetired: boolean
  /** Whether deliveries were cancelled. Later deliveries of the same parcels may then be sent. */
  readonly hasReordered: boolean
}

export interface BackupEnd {
  /** Null: the backup did not begin. */
  readonly jobId: number | null
  readonly name: string
  readonly nowMs: number
  readonly made: MadeBackup | null
  /** Null: the backup was made, or an operator has cancelled it. */
  readonly failure: string | null
}

/** Only the replica with this role may make the call; absent: any replica may. */
interface OfRole {
  readonly ofRole?: 'poller' | 'janitor'
}

interface Posted {
  /** Whether operators were told of the event before it could be stored. Then it is stored, and not queued for them. */
  readonly isPosted?: boolean | undefined
}

/** The store as admin uses it inside one transaction; see `WriteTx`. */
export interface AdminTx extends RetentionTx {
  insertJob(task: JobTask, by: string, nowMs: number): Promise<Job>
  /** The jobs that have not ended, the oldest first. */
  listUnendedJobs(limit: number): Promise<readonly UnendedJob[]>
  saveJob(job: UnendedJob, nowMs: number): Promise<void>
  /** Null: there is no such job. */
  cancelJob(jobId: number, nowMs: number): Promise<Job | null>
  /** Returns the ended jobs of which operators were not yet notified, and marks them as notified. */
  takeEndedJobs(): Promise<readonly Job[]>
  addOperatorEvent(event: OperatorEvent, nowMs: number): void
  /** Adds to the audit trail. */
  addAction(action: OperatorAction): void
  /** Removes what is kept to answer forms that are sent again. */
  forgetForms(): void
  endSession(ended: EndedSession): Promise<void>
  /** Stores that a trouble has begun; false: the trouble is stored already. */
  beginTrouble(subject: string, nowMs: number): Promise<boolean>
  /** Ends a trouble. Returns when it began; null: there was no such trouble. */
  endTrouble(subject: string): Promise<number | null>
  /** The troubles whose subjects begin with `prefix`. */
  listTroubles(prefix: string): Promise<readonly Trouble[]>
  saveTrouble(trouble: Trouble): Promise<void>
  /** Counts quarantined pushes without waiting for other transactions that do the same. */
  countQuarantine(reason: string, count: number, nowMs: number): void
  /** Returns and deletes the oldest counts that `countQuarantine` has stored. */
  takeQuarantineCounts(limit: number): Promise<readonly QuarantineCount[]>
  addTallies(additions: readonly TallyAddition[]): void
  /** False: an earlier transaction has noted the same flush. */
  noteFlush(flush: TallyFlush): Promise<boolean>
  /** Skips the `newer` newest hours or days that have counts. Returns the start of the next older one; null: there is none. */
  findCounted(span: TallySpan, newer: number): Promise<number | null>
  /** Deletes up to `limit` tallies. Returns how many. */
  pruneTallies(span: TallySpan, beforeMs: number, limit: number): Promise<number>
  /** Deletes up to `limit` operator events and actions. Returns how many. */
  pruneOperations(beforeMs: number, limit: number): Promise<number>
  loadSetting(name: string): Promise<Uint8Array | null>
  /** Stores a value, unless the name already has one. Returns the stored value. */
  makeSetting(name: string, value: Uint8Array): Promise<Uint8Array>
  saveSetting(name: string, value: Uint8Array): Promise<void>
}

/** The reads of admin; see `ReadSide`. */
export interface AdminReads extends AgedReads {
  retentionState(): Promise<RetentionState>
  /** The restores of the store, the oldest first. */
  listRestores(): Promise<readonly RestoreRecord[]>
  /** The old stores that moves have copied and left in place, the oldest first. */
  listLeftStores(): Promise<readonly LeftStore[]>
  /** Lists the damaged rows that a start skips, in words for the log. */
  listDamaged(): Promise<readonly string[]>
  counts(nowMs: number): Promise<StoreCounts>
  /** Cheaper than `counts`. */
  countQuarantined(): Promise<number>
  /** Even a short or empty page has a `next` if more parcels may follow. */
  listParcels(query: ParcelQuery): Promise<ParcelPage>
  /** Counts what `listParcels` lists over all pages. Reads at most `max` rows and one. */
  countParcels(filter: ParcelFilter, max: number): Promise<FilteredCount>
  /** Null: no parcel has this identifier. */
  inspectParcel(identifier: string): Promise<InspectedParcel | null>
  /** The first identifier of each parcel. Deleted parcels are absent. */
  nameParcels(parcelIds: readonly number[]): Promise<ReadonlyMap<number, string>>
  /** Every status that was ever the latest status of a parcel, up to a thousand. */
  listStatuses(): Promise<readonly string[]>
  /** Lists jobs with ids below `before`, the newest first; null: from the newest. */
  listJobs(query: { readonly before: number | null; readonly limit: number }): Promise<readonly Job[]>
  findJob(jobId: number): Promise<Job | null>
  /** The newest first. */
  listOperatorEvents(query: OperatorEventQuery): Promise<readonly ToldEvent[]>
  /** The oldest first. */
  listTallies(query: TallyQuery): Promise<readonly Tally[]>
  /** The audit trail, the newest first. */
  listActions(query: ActionQuery): Promise<ActionPage>
  /** Which of these parcels, deliveries and pushes exist. Leaves out things of other kinds. */
  existingTargets(targets: readonly ListedTarget[]): Promise<readonly ListedTarget[]>
  /** Which of these sessions were logged out. */
  endedAmong(sessions: readonly string[]): Promise<readonly string[]>
  /** Finds the order that a form of the portal has given; null: none. `form`: its id. */
  findFormerOrder(form: string): Promise<FormerOrder | null>
}

export interface TallyQuery {
  readonly span: TallySpan
  readonly kind: string
  readonly fromMs: number
  readonly toMs: number
}

/** `serverMs`: the server's clock, epoch milliseconds. `askedMs`, `heardMs`: our monotonic clock at the request and at the answer. */
export interface TimeSample {
  readonly serverMs: number
  readonly askedMs: number
  readonly heardMs: number
}

/** Counters that rise with the commits of all replicas. */
export interface Watermarks {
  /** When the database server was started. If this changes, the server was restarted or replaced and may have lost commits. */
  readonly server: number
  /** The last sequence of the feed. */
  readonly sequence: number
  /** Counts changes of endpoints. */
  readonly endpoints: number
  /** Counts changes of replicas and roles. */
  readonly roles: number
  /** Counts changes of the waiting deliveries by operators, jobs and joins of parcels. */
  readonly orders: number
  /** Whether nobody may write, because the store was moved or is about to be. */
  readonly isMoving: boolean
}

/** What other replicas learn about a replica's config. */
export interface ReplicaConfig {
  readonly configFingerprint: string
  /** The names of endpoints. */
  readonly endpoints: readonly string[]
  /** The names of the keys at rest; the first key encrypts, all keys decrypt. */
  readonly atRestKeys: readonly string[]
}

export interface NewReplica extends ReplicaConfig {
  readonly name: string
  readonly version: string
  readonly ttlMs: number
  /** When the replica's config took effect, if the replica joins again under a new id; null: the config takes effect now. */
  readonly configuredAtMs: number | null
}

/** The replicas that share a store, and the roles they hold. Times are epoch milliseconds of the store's clock. */
export interface ReplicaTable {
  /** Adds a replica with a lease of `ttlMs`. Rejects if this replica and another live one could not decrypt each other's secrets. */
  register(replica: NewReplica): Promise<{ readonly id: number; readonly nowMs: number }>
  /**
   * Renews a lease. `lapsed`: how many leases of other replicas have run out. Null: this replica was declared dead, or the server has lost
   * the commit that registered it. The same statement stores the concerns, which the other replicas read with `list`.
   */
  renew(id: number, ttlMs: number, concerns: readonly Concern[]): Promise<{ readonly nowMs: number; readonly lapsed: number } | null>
  look(): Promise<Watermarks>
  /**
   * First declares replicas dead whose leases have run out. Then `decide` changes the roles of the replica `id`, while nobody else can change
   * roles. Resolves with the new roles of `id`.
   */
  changeRoles(id: number, decide: (assignment: Assignment) => RoleChange): Promise<readonly Role[]>
  /** Saves a new config. Resolves with the time at which the config took effect; null: the replica was declared dead. Rejects like `register`. */
  configure(id: number, config: ReplicaConfig): Promise<number | null>
  list(): Promise<readonly Replica[]>
  /** Removes a replica that stops. Other replicas may then take its roles. */
  remove(id: number): Promise<void>
  close(): Promise<void>
}
