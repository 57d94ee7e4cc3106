import type { Outlived } from '../../core/domain/admin/clock-record.ts'
import type { TimeCursor } from '../../core/domain/delivery/operator-event.ts'
import { countsFromMs, type ParcelState } from '../../core/domain/history/parcel-state.ts'
import type { InboxState } from '../../core/domain/ingest/inbox.ts'

declare module '../../core/domain/admin/job.ts' {
  interface JobTasks {
    readonly retention: RetentionJobTask
  }
  interface JobCursors {
    /** The pass that the job continues. */
    readonly retention: { readonly passStartedAtMs: number }
  }
}

export interface RetentionJobTask {
  readonly kind: 'retention'
}

/** How long each kind of data is kept, in milliseconds. */
export interface Retention {
  /** The bytes of pushes and of polled answers. */
  readonly rawMs: number
  /** A parcel, counted from the last entry, push, answer, watch order or question about it. */
  readonly historyMs: number
  /** Deliveries that have ended, with their attempts. */
  readonly deliveriesMs: number
  readonly feedMs: number
  /** The audit trail and operator events. */
  readonly auditMs: number
  /** The counts of the carrier's report. */
  readonly reportsMs: number
  /** Undelivered events, pushes in quarantine, and data that an endpoint still needs are held back from removal, but no longer than this. */
  readonly heldMs: number
}

const CENTURY_MS = 100 * 365 * 24 * 3_600_000

/** The retention with which nothing is removed because of its age. */
export const KEPT_FOREVER: Retention = {
  rawMs: CENTURY_MS,
  historyMs: CENTURY_MS,
  deliveriesMs: CENTURY_MS,
  feedMs: CENTURY_MS,
  auditMs: CENTURY_MS,
  reportsMs: CENTURY_MS,
  heldMs: CENTURY_MS,
}

/**
 * The stages of a retention pass, in order. Each removes one kind of data. `overdue` cancels deliveries that have waited longer than `heldMs`.
 * `deliveries`: deliveries that have ended. `pushBytes`, `answerBytes`: the raw bytes, but not the entries made from them. `parcels`: whole parcels.
 * `texts`: texts that no parcel uses any more. `unrecorded`: pushes without a parcel. `feed`: events of the feed. `composed`: bodies of composed
 * events to which neither the feed nor a delivery refers. `audit`: the audit trail, operator events, tallies and reports.
 */
export const RETENTION_STAGES = [
  'overdue',
  'deliveries',
  'pushBytes',
  'answerBytes',
  'parcels',
  'texts',
  'unrecorded',
  'feed',
  'composed',
  'audit',
] as const

export type RetentionStage = (typeof RETENTION_STAGES)[number]
export type RetentionCounts = Readonly<Partial<Record<RetentionStage, number>>>

/** Rows that are old enough to be removed but must stay. `sinceMs`: when the first of them became old enough, epoch milliseconds; null: no rows. */
export interface HeldBack {
  readonly count: number
  readonly sinceMs: number | null
}

const NOTHING_HELD: HeldBack = { count: 0, sinceMs: null }

/** A delivery that was queued long ago. `isWaiting`: it has not ended. */
export interface AgedDelivery {
  readonly deliveryId: number
  readonly endpointId: string
  readonly parcelId: number
  readonly queuedAtMs: number
  readonly isWaiting: boolean
  /** The lived time at which it was queued again; null: it was queued once, so its id shows its age. */
  readonly queuedLivedMs: number | null
}

/** Decides which waiting deliveries are cancelled: those that are outlived. Those that are only older than `deliveriesMs` are held back. */
export function decideOverdue(rows: readonly AgedDelivery[], nowMs: number, { deliveriesMs }: Retention, outlived: Outlived) {
  const isOver = ({ deliveryId, queuedLivedMs }: AgedDelivery) =>
    queuedLivedMs === null ? deliveryId <= outlived.deliveryId : queuedLivedMs <= outlived.livedMs
  const waiting = rows.filter(({ isWaiting }) => isWaiting)
  const past = waiting.filter((row) => !isOver(row) && row.queuedAtMs < nowMs - deliveriesMs)
  return { cancelled: waiting.filter(isOver), held: heldOf(past.map(({ queuedAtMs }) => queuedAtMs + deliveriesMs)) }
}

/** A push that is older than `rawMs`, but whose bytes are still stored. */
export interface AgedPush {
  readonly inboxId: number
  readonly receivedAtMs: number
  readonly state: InboxState
  /** 0: the push has no parcel. */
  readonly parcelId: number
  readonly bodyBytes: number
}

export interface Needs {
  /** The ids of the parcels with a waiting delivery, among the parcels that are looked at. */
  readonly awaited: ReadonlySet<number>
  /** Whether an endpoint is behind: earlier events of the feed are still being queued for it, so it may need any event. */
  readonly isBehind: boolean
}

/**
 * Decides which pushes lose their bytes. The bytes stay while a delivery of their parcel waits, and while a dead or cancelled delivery may send them
 * again (`replayable`). Until they are outlived, they also stay while the push is open in quarantine or an endpoint is behind. An open push cannot be
 * reprocessed without its bytes, so it is closed when it loses them.
 */
export function decidePushBytes(
  rows: readonly AgedPush[],
  { awaited, isBehind, replayable }: Needs & { readonly replayable: ReadonlySet<number> },
  { rawMs }: Retention,
  outlived: Outlived,
) {
  const isKept = ({ inboxId, parcelId, state }: AgedPush) =>
    awaited.has(parcelId) || ((isOpen(state) || isBehind) && inboxId > outlived.inboxId)
  const cleared = rows.filter((row) => !isKept(row) && !replayable.has(row.inboxId))
  return {
    cleared: cleared.map(({ inboxId }) => inboxId),
    closed: cleared.filter(({ state }) => isOpen(state)).map(({ inboxId }) => inboxId),
    held: heldOf(rows.filter(isKept).map(({ receivedAtMs }) => receivedAtMs + rawMs)),
  }
}

/** A quarantined push is open until it is reprocessed or dismissed. */
function isOpen(state: InboxState): boolean {
  return state === 'quarantined'
}

/** A push without a parcel that is older than `historyMs`. */
export type UnrecordedPush = Pick<AgedPush, 'inboxId' | 'receivedAtMs' | 'state'>

/** Decides which pushes without a parcel are removed, with their digests. An open push stays until it is outlived. */
export function decideUnrecorded(rows: readonly UnrecordedPush[], { historyMs }: Retention, outlived: Outlived) {
  const isKept = ({ inboxId, state }: UnrecordedPush) => isOpen(state) && inboxId > outlived.inboxId
  const removed = rows.filter((row) => !isKept(row))
  return {
    removed: removed.map(({ inboxId }) => inboxId),
    closed: removed.filter(({ state }) => isOpen(state)).map(({ inboxId }) => inboxId),
    held: heldOf(rows.filter(isKept).map(({ receivedAtMs }) => receivedAtMs + historyMs)),
  }
}

export type ParcelAge = Pick<
  ParcelState,
  'parcelId' | 'watchedAtMs' | 'activatedAtMs' | 'latest' | 'lastSeenAtMs' | 'checkedAtMs' | 'nextPollAtMs' | 'entryCount'
>

/** Returns when something last happened to a parcel: an entry, a push or an answer about it, a watch order, or a question about it. */
function lastTouchedMs({ watchedAtMs, activatedAtMs, latest, lastSeenAtMs, checkedAtMs }: ParcelAge): number {
  return Math.max(activatedAtMs, watchedAtMs ?? 0, latest === null ? 0 : countsFromMs(latest), lastSeenAtMs ?? 0, checkedAtMs ?? 0)
}

/** Whether nothing has happened to a parcel for longer than `historyMs`. A parcel that is still polled never counts as that old. */
export function isParcelPast(age: ParcelAge, nowMs: number, { historyMs }: Retention): boolean {
  return age.nextPollAtMs === null && lastTouchedMs(age) < nowMs - historyMs
}

/**
 * Decides which parcels are removed. A parcel stays while the store has deliveries of it, whether they wait or have ended. If an endpoint is behind,
 * a parcel also stays until it is outlived and older than `heldMs`.
 */
export function decideParcels(
  rows: readonly ParcelAge[],
  needs: Needs & { readonly delivered: ReadonlySet<number> },
  nowMs: number,
  retention: Retention,
  outlived: Outlived,
) {
  const { awaited, delivered, isBehind } = needs
  const past = rows.filter((row) => isParcelPast(row, nowMs, retention))
  const isOver = (row: ParcelAge) => row.parcelId <= outlived.parcelId && lastTouchedMs(row) < nowMs - retention.heldMs
  const isKept = (row: ParcelAge) => awaited.has(row.parcelId) || (isBehind && !isOver(row))
  return {
    retired: past.filter((row) => !isKept(row) && !delivered.has(row.parcelId)).map(({ parcelId }) => parcelId),
    held: heldOf(past.filter(isKept).map((row) => lastTouchedMs(row) + retention.historyMs)),
  }
}

/** The last sequence of the feed and the highest parcel id at one moment. Such marks show how old a sequence or a parcel is. */
export interface AgeMark {
  readonly atMs: number
  readonly sequence: number
  readonly parcelId: number
}

/** Returns the numbers of the last mark before a time. They are 0 if there is no such mark. */
export function givenBefore(marks: readonly AgeMark[], beforeMs: number): Omit<AgeMark, 'atMs'> {
  const older = marks.filter(({ atMs }) => atMs < beforeMs)
  return {
    sequence: Math.max(0, ...older.map(({ sequence }) => sequence)),
    parcelId: Math.max(0, ...older.map(({ parcelId }) => parcelId)),
  }
}

/** A running relay makes a mark every hour. A longer gap than this shows that the relay was stopped or its clock was changed. */
const GAP_MS = 36 * 3_600_000
/** The mark of the present moment. A pass stores it when it begins. */
export interface MarkOfNow {
  readonly mark: AgeMark
  /** The marks after this time must be dropped, because they were made while the clock was ahead by mistake; null: drop no marks. */
  readonly droppedAfterMs: number | null
}

/**
 * Marks in the future show that the clock was changed. If they follow a gap, they were made while the clock was ahead by mistake, so they are
 * dropped. Otherwise the clock was set back. Then the new mark repeats the time of the last mark, so that no data looks older than it is.
 */
export function markNow(marks: readonly AgeMark[], given: AgeMark): MarkOfNow {
  const ahead = marks.findIndex(({ atMs }) => atMs > given.atMs)
  const [before, first] = [marks[ahead - 1], marks[ahead]]
  const isJump = before !== undefined && first !== undefined && first.atMs - before.atMs > GAP_MS
  const kept = isJump ? marks.slice(0, ahead) : marks
  const mark = { ...given, atMs: Math.max(given.atMs, kept.at(-1)?.atMs ?? 0) }
  return { mark, droppedAfterMs: isJump ? before.atMs : null }
}

/** Returns the time of the newest mark that is older than `historyMs` and `feedMs`; 0: there is none. Earlier marks are not needed. */
export function marksKeptFrom(marks: readonly AgeMark[], nowMs: number, { historyMs, feedMs }: Retention): number {
  const pastMs = nowMs - Math.max(historyMs, feedMs)
  return Math.max(0, ...marks.flatMap(({ atMs }) => (atMs < pastMs ? [atMs] : [])))
}

/** `queuedTo`: the sequence up to which events were queued for the endpoint. */
export interface BehindEndpoint {
  readonly endpointId: string
  readonly queuedTo: number
}

/**
 * Decides up to which sequence (`upTo`) the feed is removed. Endpoints that are behind still need the events above `needed`, so these stay until they
 * are outlived. Then they are removed too, and `passed` lists the endpoints that will never receive them.
 */
export function decideFeed(
  marks: readonly AgeMark[],
  behind: readonly BehindEndpoint[],
  nowMs: number,
  { feedMs }: Retention,
  outlived: Outlived,
) {
  const past = givenBefore(marks, nowMs - feedMs).sequence
  const over = Math.min(past, outlived.sequence)
  const needed = Math.min(past, ...behind.map(({ queuedTo }) => queuedTo))
  const upTo = Math.max(needed, over)
  const firstHeld = marks.find(({ sequence }) => sequence > upTo)
  return {
    upTo,
    needed,
    passed: behind.filter(({ queuedTo }) => queuedTo < over).map(({ endpointId }) => endpointId),
    held: past > upTo ? { count: past - upTo, sinceMs: (firstHeld?.atMs ?? nowMs - feedMs) + feedMs } : NOTHING_HELD,
  }
}

/** The progress of a pass. It is stored with each batch, so that a pass continues exactly where it was when the relay restarts. */
export interface RetentionPass {
  readonly startedAtMs: number
  readonly stage: RetentionStage
  /** Where the stage continues; null: it begins. */
  readonly cursor: TimeCursor | null
  readonly removed: RetentionCounts
  readonly held: RetentionCounts
  /** How many rows older than `heldMs` were cancelled, closed or removed although they were undelivered, open or still needed. */
  readonly givenUp: RetentionCounts
  readonly heldSinceMs: number | null
  /** The ids of the endpoints whose deliveries or events were given up. */
  readonly endpoints: readonly string[]
  /** Whether the pass removed nothing more, because the clock was doubted. */
  readonly isClockDoubted: boolean
}

export interface StageOutcome {
  readonly removed: number
  readonly held?: HeldBack
  readonly givenUp?: number
  readonly endpoints?: readonly string[]
  /** Where the stage continues; null: the stage is over. */
  readonly next: TimeCursor | null
}

export interface RetentionReport extends Omit<RetentionPass, 'stage' | 'cursor'> {
  readonly endedAtMs: number
}

export interface RetentionState {
  readonly pass: RetentionPass | null
  readonly last: RetentionReport | null
}

const RETENTION_EVERY_MS = 3_600_000

/** Whether a pass is under way or must begin. After the clock was set back by an hour or more, a pass begins at once instead of hours later. */
export function isPassDue({ pass, last }: RetentionState, nowMs: number): boolean {
  return pass !== null || last === null || Math.abs(nowMs - last.startedAtMs) >= RETENTION_EVERY_MS
}

export function beginPass(nowMs: number, isClockDoubted = false): RetentionPass {
  const nothing = { removed: {}, held: {}, givenUp: {}, heldSinceMs: null, endpoints: [], isClockDoubted }
  return { startedAtMs: nowMs, stage: RETENTION_STAGES[0], cursor: null, ...nothing }
}

const ENDPOINTS_MAX = 100

/** `isOver`: it was the last batch of the last stage. */
export function advancePass(pass: RetentionPass, outcome: StageOutcome): { readonly pass: RetentionPass; readonly isOver: boolean } {
  const { removed, held = NOTHING_HELD, givenUp = 0, endpoints = [], next } = outcome
  const { stage } = pass
  const following = RETENTION_STAGES[RETENTION_STAGES.indexOf(stage) + 1]
  const counted = {
    ...pass,
    removed: plus(pass.removed, stage, removed),
    held: plus(pass.held, stage, held.count),
    givenUp: plus(pass.givenUp, stage, givenUp),
    heldSinceMs: earlier(pass.heldSinceMs, held.sinceMs),
    endpoints: [...new Set([...pass.endpoints, ...endpoints])].slice(0, ENDPOINTS_MAX),
    cursor: next,
  }
  if (next !== null) return { pass: counted, isOver: false }
  return following === undefined ? { pass: counted, isOver: true } : { pass: { ...counted, stage: following }, isOver: false }
}

export function endPass({ stage: _stage, cursor: _cursor, ...counted }: RetentionPass, nowMs: number): RetentionReport {
  return { ...counted, endedAtMs: nowMs }
}

/** Operators are notified of data that was held back for at least this long. */
const HELD_TOLD_AFTER_MS = 30 * 24 * 3_600_000

/** A retention pass begins each hour, so one should end within this time. */
export const PASS_LATE_MS = 6 * 3_600_000

export function isHeldLong({ heldSinceMs, startedAtMs }: RetentionReport): boolean {
  return heldSinceMs !== null && startedAtMs - heldSinceMs >= HELD_TOLD_AFTER_MS
}

/** Returns the first rows that together are at most `sizeMax` large, but at least one row. */
export function upToSize<Row>(rows: readonly Row[], sizeOf: (row: Row) => number, sizeMax: number): readonly Row[] {
  let size = 0
  const end = rows.findIndex((row, at) => {
    size += sizeOf(row)
    return at > 0 && size > sizeMax
  })
  return end === -1 ? rows : rows.slice(0, end)
}

function plus(counts: RetentionCounts, stage: RetentionStage, more: number): RetentionCounts {
  return more === 0 ? counts : { ...counts, [stage]: (counts[stage] ?? 0) + more }
}

function earlier(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other
  return Math.min(one, other)
}

/** `dueMs`: when each row became old enough to be removed. */
function heldOf(dueMs: readonly number[]): HeldBack {
  return dueMs.length === 0 ? NOTHING_HELD : { count: dueMs.length, sinceMs: Math.min(...dueMs) }
}

/** The name of the data that each stage of retention removes, for people. */
export const RETENTION_TITLES: Readonly<Record<RetentionStage, string>> = {
  overdue: 'Deliveries that wait too long',
  deliveries: 'Deliveries that have ended',
  pushBytes: 'Bytes of pushes',
  answerBytes: 'Bytes of answers',
  parcels: 'Parcels',
  texts: 'Texts that no parcel uses any more',
  unrecorded: 'Pushes without a parcel',
  feed: 'Events of the feed',
  composed: 'Bodies of composed events',
  audit: 'Audit trail, operator events, tallies, reports',
}
