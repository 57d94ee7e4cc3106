import {
  CLOCK_SETTING,
  type ClockRecord,
  encodeClockRecord,
  isNewsOf,
  markLife,
  noteClock,
  type Outlived,
  outlivedBy,
} from '../../core/domain/admin/clock-record.ts'
import { keptFrom, REPORT_SPAN, SPANS_KEPT, type TallySpan } from '../../core/domain/admin/tally.ts'
import { DAY_MS } from '../../core/domain/calendar.ts'
import type { TimeCursor } from '../../core/domain/delivery/operator-event.ts'
import type { ClockWatch } from '../../core/flow/admin/clock-watch.ts'
import { audit, recordOperatorEvent } from '../../core/flow/audit.tx.ts'
import { beginTrouble, endTrouble } from '../../core/store/admin/operations.ts'
import { pruneReportEvidence } from '../../core/store/admin/report-note-rows.ts'
import { findCounted, pruneTallies } from '../../core/store/admin/tally-rows.ts'
import { listMarked } from '../../core/store/history/contents.ts'
import { RETIRED_AT, saveSetting } from '../../core/store/settings.ts'
import type { Transactions, WriteTx } from '../../core/store/write-store.ts'
import { lockRetention, pruneOperations, retireParcels, saveRetention, withAgedRows } from './remove-aged.rows.ts'
import {
  advancePass,
  beginPass,
  decideFeed,
  decideOverdue,
  decideParcels,
  decidePushBytes,
  decideUnrecorded,
  endPass,
  givenBefore,
  isHeldLong,
  isParcelPast,
  isPassDue,
  markNow,
  marksKeptFrom,
  type Needs,
  type Retention,
  type RetentionCounts,
  type RetentionPass,
  type RetentionReport,
  type RetentionStage,
  type StageOutcome,
  upToSize,
} from './retention.rules.ts'

/*
 * The limits of a batch, which is one transaction. They are so small that a push waits only for milliseconds, even in a large store.
 * Between batches the janitor rests for as long as a batch takes.
 */
const ROWS_AT_ONCE = 100
const BYTES_AT_ONCE = 1024 * 1024
const ATTEMPTS_AT_ONCE = 300
/** To parse an answer, so that its order stays when its bytes go, takes this many times as long as to remove it. */
const PARSING_COST = 4
/** One batch looks at up to this many old deliveries. It cancels up to `ROWS_AT_ONCE` deliveries that still wait. */
const DELIVERIES_LOOKED_AT = 1000
/**
 * One batch looks at up to this many parcels. It retires at most `PARCELS_AT_ONCE` of them, with at most `ENTRIES_AT_ONCE` entries in all.
 */
const PARCELS_LOOKED_AT = 500
const PARCELS_AT_ONCE = 20
const ENTRIES_AT_ONCE = 200
/** One batch looks up waiting deliveries for up to this many pairs of endpoint and parcel. */
const LOOKS_AT_ONCE = 2000
const FEED_AT_ONCE = 300
/** On PostgreSQL each batch of texts makes other replicas decide again what they are about to record, so few large batches are better. */
const TEXTS_AT_ONCE = 500

/** Names the trouble of which operators are notified if data could not be removed for a long time. */
const HELD_SUBJECT = 'retention'

export interface PassBatch {
  readonly retired: readonly number[]
  readonly hasReordered: boolean
  /** How many rows the pass has removed since its start. */
  readonly removedByPass: number
  /** The pass that continues; null: the pass has ended. */
  readonly pass: RetentionPass | null
  /** Whether the pass has ended because the clock is doubted. */
  readonly isClockDoubted: boolean
}

export interface PruneRequest {
  readonly retention: Retention
  readonly nowMs: number
  /** Whether an operator has ordered the pass, and so confirms that a jump of the clock is right. */
  readonly isOrdered: boolean
  readonly clockWatch: ClockWatch
  /** The start of the pass that the caller continues; null or absent: the caller continues any pass, or begins one. */
  readonly ofPassMs?: number | null
}

type PassTx = ReturnType<typeof withAgedRows<WriteTx>>

/** Does one batch of the pass that is under way. If none is, begins a pass. */
export async function pruneIn(
  within: WriteTx,
  { retention, nowMs, isOrdered, clockWatch, ofPassMs = null }: PruneRequest,
): Promise<PassBatch> {
  const tx = withAgedRows(within)
  const { pass: underWay, last } = await lockRetention(tx)
  // The hourly work also continues an ordered pass, and may have ended it meanwhile.
  if (ofPassMs !== null && underWay?.startedAtMs !== ofPassMs)
    return { ...NOTHING_DONE, removedByPass: last?.startedAtMs === ofPassMs ? sumOf(last.removed) : 0 }
  const clock = await noteLife(tx, retention, { clockWatch, nowMs })
  const isDoubted = clockWatch.contradiction() !== null || (underWay === null && !isOrdered && clock.jump !== null)
  const pass = underWay ?? (await begin(tx, retention, nowMs))
  if (isDoubted) {
    await saveRetention(tx, { pass: null, last: endPass({ ...pass, isClockDoubted: true }, nowMs) })
    return { ...NOTHING_DONE, isClockDoubted: true }
  }
  const { after, outcome } = await workOn({ tx, pass, retention, nowMs, outlived: outlivedBy(clock, retention.heldMs) })
  const { retired = [], hasReordered = false } = outcome
  if (retired.length > 0) await saveSetting(tx, RETIRED_AT, Buffer.from(String(nowMs)))
  if (after.isOver) {
    const report = endPass(after.pass, nowMs)
    await tell(tx, report, nowMs)
    await saveRetention(tx, { pass: null, last: report })
  } else await saveRetention(tx, { pass: after.pass, last })
  const removedByPass = sumOf(after.pass.removed)
  return { retired, hasReordered, removedByPass, pass: after.isOver ? null : after.pass, isClockDoubted: false }
}

const NOTHING_DONE: PassBatch = { retired: [], hasReordered: false, removedByPass: 0, pass: null, isClockDoubted: false }

/** Adds the time since the last look to the lived time. Call it in every look for work, so that little is lost when the relay is killed. */
async function noteLife(
  tx: PassTx,
  { heldMs }: Retention,
  { clockWatch, nowMs }: Pick<PruneRequest, 'clockWatch' | 'nowMs'>,
): Promise<ClockRecord> {
  const before = await tx.clockRecord()
  const noted = noteClock(before, { ...clockWatch.reading(), wallMs: nowMs })
  const [{ last: sequence }, { deliveryId, inboxId, parcelId }] = [await tx.feedSpan(), await tx.newest()]
  const after = markLife(noted, { deliveryId, inboxId, parcelId, sequence }, heldMs)
  if (isNewsOf(before, after)) await saveSetting(tx, CLOCK_SETTING, encodeClockRecord(after))
  return after
}

function sumOf(counts: RetentionCounts): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

/** Does a batch of the present stage. If the stage has nothing to do, goes on to the next one. */
async function workOn(
  look: Look,
): Promise<{ readonly after: ReturnType<typeof advancePass>; readonly outcome: Awaited<ReturnType<Stage>> }> {
  const outcome = await STAGES[look.pass.stage](look)
  const after = advancePass(look.pass, outcome)
  const isIdle = outcome.removed === 0 && (outcome.givenUp ?? 0) === 0 && outcome.next === null
  return isIdle && !after.isOver ? await workOn({ ...look, pass: after.pass }) : { after, outcome }
}

export interface PrunePorts {
  /** The setting as it is now. A reload of the config may change it. */
  readonly retention: () => Retention
  /** Called with parcels that are gone, after the commit. */
  readonly changed: (parcelIds: readonly number[]) => void
  readonly clockWatch: ClockWatch
}

export function createPrune(store: Transactions, { retention, changed, clockWatch }: PrunePorts) {
  return {
    /**
     * Does a batch of the retention pass that is under way, or begins a pass that is due. `isDone`: there is nothing to do now. `hasRetired`: whether
     * parcels were retired, which adds events to the feed. `hasReordered`: whether deliveries were cancelled. Later deliveries of the same
     * parcels may then be sent.
     */
    async prune({ nowMs }: { readonly nowMs: number }) {
      const { retired, ...done } = await store.transaction(
        async (tx) => {
          if (!isPassDue(await lockRetention(tx), nowMs)) {
            await noteLife(withAgedRows(tx), retention(), { clockWatch, nowMs })
            return { isDone: true, retired: [], hasReordered: false }
          }
          const { pass, retired, hasReordered } = await pruneIn(tx, { retention: retention(), nowMs, isOrdered: false, clockWatch })
          return { isDone: pass === null, retired, hasReordered }
        },
        { ofRole: 'janitor', announced: ({ hasReordered }) => hasReordered },
      )
      if (retired.length > 0) changed(retired)
      return { ...done, hasRetired: retired.length > 0 }
    },
  }
}

async function begin(tx: PassTx, retention: Retention, nowMs: number): Promise<RetentionPass> {
  const marks = await tx.ageMarks()
  const [{ last: sequence }, { parcelId }] = [await tx.feedSpan(), await tx.newest()]
  const { mark, droppedAfterMs } = markNow(marks, { atMs: nowMs, sequence, parcelId })
  tx.dropMarks({ beforeMs: marksKeptFrom(marks, nowMs, retention), afterMs: droppedAfterMs ?? Number.MAX_SAFE_INTEGER })
  tx.keepMark(mark)
  return beginPass(nowMs)
}

/**
 * Notifies operators of data that was given up although it was still needed. If data could not be removed for a long time, notifies them once.
 * Call it in the transaction that ends a pass.
 */
async function tell(tx: WriteTx, report: RetentionReport, nowMs: number): Promise<void> {
  const { givenUp, endpoints, held, heldSinceMs } = report
  if (Object.keys(givenUp).length > 0) {
    const by = { kind: 'relay', name: 'retention', address: null } as const
    audit(tx, { action: { atMs: nowMs, by, action: 'retention.gave_up', target: null, detail: { givenUp, endpoints } } })
    await recordOperatorEvent(tx, { event: 'retention_gave_up', givenUp, endpoints }, nowMs)
  }
  if (!isHeldLong(report)) await endTrouble(tx, HELD_SUBJECT)
  else if (await beginTrouble(tx, HELD_SUBJECT, nowMs))
    await recordOperatorEvent(tx, { event: 'retention_held', held, since: new Date(heldSinceMs ?? nowMs).toISOString() }, nowMs)
}

interface Look {
  readonly tx: PassTx
  readonly pass: RetentionPass
  readonly retention: Retention
  readonly nowMs: number
  readonly outlived: Outlived
}

type Stage = (look: Look) => Promise<StageOutcome & { readonly retired?: readonly number[]; readonly hasReordered?: boolean }>

const STAGES: Readonly<Record<RetentionStage, Stage>> = {
  async overdue({ tx, pass: { startedAtMs, cursor }, retention, nowMs, outlived }) {
    const beforeMs = startedAtMs - Math.min(retention.heldMs, retention.deliveriesMs)
    const found = await tx.agedDeliveries({ beforeMs, after: cursor, limit: DELIVERIES_LOOKED_AT })
    const rows = upToSize(found, ({ isWaiting }) => (isWaiting ? 1 : 0), ROWS_AT_ONCE)
    const { cancelled, held } = decideOverdue(rows, startedAtMs, retention, outlived)
    const ids = cancelled.map(({ deliveryId }) => deliveryId)
    if (ids.length > 0) tx.cancelDeliveries(ids, nowMs)
    const last = isLastPage(rows, found, DELIVERIES_LOOKED_AT) ? undefined : rows.at(-1)
    return {
      removed: 0,
      givenUp: cancelled.length,
      endpoints: cancelled.map(({ endpointId }) => endpointId),
      held,
      next: last === undefined ? null : { atMs: last.queuedAtMs, id: last.deliveryId },
      hasReordered: cancelled.length > 0,
    }
  },

  async deliveries({ tx, pass: { startedAtMs, cursor }, retention }) {
    const found = await tx.endedDeliveries({ beforeMs: startedAtMs - retention.deliveriesMs, after: cursor, limit: ROWS_AT_ONCE })
    const rows = upToSize(found, ({ attempts }) => attempts, ATTEMPTS_AT_ONCE)
    if (rows.length > 0) await tx.removeDeliveries(rows.map(({ deliveryId }) => deliveryId))
    const last = isLastPage(rows, found) ? undefined : rows.at(-1)
    return { removed: rows.length, next: last === undefined ? null : { atMs: last.settledAtMs, id: last.deliveryId } }
  },

  async pushBytes({ tx, pass: { startedAtMs, cursor }, retention, outlived }) {
    const found = await tx.agedPushes({ beforeMs: startedAtMs - retention.rawMs, after: cursor, limit: ROWS_AT_ONCE })
    const sized = upToSize(found, ({ bodyBytes }) => bodyBytes, BYTES_AT_ONCE)
    const backlogs = await tx.endpointsWithBacklog()
    const rows = sized.slice(0, looksFor(backlogs.length))
    const needs = await needsOf(tx, backlogs, rows)
    const replayable = await tx.replayablePushes(rows.map(({ inboxId }) => inboxId))
    const { cleared, closed, held } = decidePushBytes(rows, { ...needs, replayable }, retention, outlived)
    if (cleared.length > 0) tx.clearPushes({ cleared, closed })
    const last = isLastPage(rows, found) ? undefined : rows.at(-1)
    const next = last === undefined ? null : { atMs: last.receivedAtMs, id: last.inboxId }
    return { removed: cleared.length, givenUp: closed.length, held, next }
  },

  async answerBytes({ tx, pass: { startedAtMs }, retention }) {
    const found = await tx.agedAnswers({ beforeMs: startedAtMs - retention.rawMs, limit: ROWS_AT_ONCE })
    const rows = upToSize(found, ({ bodyBytes, decidesOrder }) => bodyBytes * (decidesOrder ? PARSING_COST : 1), BYTES_AT_ONCE)
    if (rows.length > 0) await tx.clearAnswers(rows)
    return { removed: rows.length, next: isLastPage(rows, found) ? null : AGAIN }
  },

  parcels: retire,

  async texts({ tx, pass: { cursor } }) {
    const texts = await listMarked(tx, { after: cursor?.id ?? 0, limit: TEXTS_AT_ONCE })
    const unused = texts.filter(({ isUsed }) => !isUsed)
    if (texts.length > 0) tx.removeTexts({ unused, used: texts.filter(({ isUsed }) => isUsed) })
    const last = texts.length < TEXTS_AT_ONCE ? undefined : texts.at(-1)
    return { removed: unused.length, next: last === undefined ? null : { atMs: 0, id: last.id } }
  },

  async unrecorded({ tx, pass: { startedAtMs, cursor }, retention, outlived }) {
    const rows = await tx.unrecordedPushes({ beforeMs: startedAtMs - retention.historyMs, after: cursor, limit: ROWS_AT_ONCE })
    const { removed, closed, held } = decideUnrecorded(rows, retention, outlived)
    if (removed.length > 0) tx.removePushes(removed)
    const last = rows.length < ROWS_AT_ONCE ? undefined : rows.at(-1)
    const next = last === undefined ? null : { atMs: last.receivedAtMs, id: last.inboxId }
    return { removed: removed.length, givenUp: closed.length, held, next }
  },

  async feed({ tx, pass: { startedAtMs }, retention, outlived }) {
    const behind = (await tx.listEndpoints()).flatMap(({ endpoint, queuedTo }) =>
      queuedTo === null ? [] : [{ endpointId: endpoint.id, queuedTo }],
    )
    const { upTo, needed, passed, held } = decideFeed(await tx.ageMarks(), behind, startedAtMs, retention, outlived)
    const sequences = await tx.agedFeed({ after: await tx.feedPrunedTo(), upTo, limit: FEED_AT_ONCE })
    const last = sequences.at(-1)
    if (last !== undefined) await tx.pruneFeed(last)
    const givenUp = sequences.filter((sequence) => sequence > needed).length
    const done = { removed: sequences.length, givenUp, endpoints: givenUp > 0 ? passed : [] }
    return sequences.length < FEED_AT_ONCE ? { ...done, held, next: null } : { ...done, next: AGAIN }
  },

  async composed({ tx, pass: { cursor } }) {
    const rows = await tx.composedEvents({ after: cursor?.id ?? 0, upTo: await tx.feedPrunedTo(), limit: ROWS_AT_ONCE })
    const unnamed = rows.flatMap(({ sequence, isNamed }) => (isNamed ? [] : [sequence]))
    if (unnamed.length > 0) tx.removeComposed(unnamed)
    const last = rows.length < ROWS_AT_ONCE ? undefined : rows.at(-1)
    return { removed: unnamed.length, next: last === undefined ? null : { atMs: 0, id: last.sequence } }
  },

  async audit({ tx, pass: { startedAtMs }, retention: { auditMs, reportsMs } }) {
    const from = async (span: TallySpan) => keptFrom(span, startedAtMs, await findCounted(tx, span, SPANS_KEPT[span] - 1))
    const [hoursFromMs, daysFromMs] = [await from('hour'), await from('day')]
    let removed = await pruneTallies(tx, 'hour', hoursFromMs, ROWS_AT_ONCE)
    removed += await pruneTallies(tx, 'day', daysFromMs, ROWS_AT_ONCE - removed)
    removed += await pruneOperations(tx, startedAtMs - auditMs, ROWS_AT_ONCE - removed)
    if (removed < ROWS_AT_ONCE) removed += await pruneReports(tx, { startedAtMs, reportsMs, limit: ROWS_AT_ONCE - removed })
    return { removed, next: removed < ROWS_AT_ONCE ? null : AGAIN }
  },
}

/** Like other tallies, days of the report go only after as many later days were counted (DOMAIN 6.1). */
async function pruneReports(
  tx: PassTx,
  { startedAtMs, reportsMs, limit }: { readonly startedAtMs: number; readonly reportsMs: number; readonly limit: number },
): Promise<number> {
  const countedFromMs = await findCounted(tx, REPORT_SPAN, Math.ceil(reportsMs / DAY_MS))
  if (countedFromMs === null) return 0
  // A day of the report is a date, which may begin a day later than in UTC.
  const beforeMs = Math.min(Math.floor((startedAtMs - reportsMs) / DAY_MS) * DAY_MS, countedFromMs)
  const removed = await pruneTallies(tx, REPORT_SPAN, beforeMs, limit)
  return removed + (removed < limit ? await pruneReportEvidence(tx, beforeMs, limit - removed) : 0)
}

/** Retires the first parcels of a page that are older than `retention.historyMs`, as many as one batch may. */
async function retire({ tx, pass: { startedAtMs, cursor }, retention, outlived }: Look): ReturnType<Stage> {
  const { parcelId: upTo } = givenBefore(await tx.ageMarks(), startedAtMs - retention.historyMs)
  const page = await tx.parcelAges({ after: cursor?.id ?? 0, upTo, limit: PARCELS_LOOKED_AT })
  const past = page.filter((row) => isParcelPast(row, startedAtMs, retention))
  const backlogs = await tx.endpointsWithBacklog()
  const endpoints = Math.max(backlogs.length, (await tx.listEndpoints()).length)
  const sized = upToSize(past.slice(0, PARCELS_AT_ONCE), ({ entryCount }) => entryCount, ENTRIES_AT_ONCE)
  const rows = sized.slice(0, looksFor(endpoints))
  const last = rows.length < past.length ? rows.at(-1) : page.length < PARCELS_LOOKED_AT ? undefined : page.at(-1)
  const next = last === undefined ? null : { atMs: 0, id: last.parcelId }
  if (rows.length === 0) return { removed: 0, next }
  // The parcels may have changed since they were read. So lock them, and decide by what they are then.
  const standing = await tx.holdParcels(rows.map(({ parcelId }) => parcelId))
  const delivered = await tx.deliveredParcels(standing.map(({ parcelId }) => parcelId))
  const needs = { ...(await needsOf(tx, backlogs, standing)), delivered }
  const { retired, held } = decideParcels(standing, needs, startedAtMs, retention, outlived)
  if (retired.length === 0) return { removed: 0, held, next }
  const { isDone } = await retireParcels(tx, retired, ROWS_AT_ONCE)
  return isDone ? { removed: retired.length, retired, held, next } : { removed: 0, next: cursor ?? AGAIN }
}

/** The start of a stage. A stage that removes everything it finds begins each batch there. */
const AGAIN: TimeCursor = { atMs: 0, id: 0 }

/** Whether a batch handled all rows of a page, and the page was the last. */
function isLastPage(rows: readonly unknown[], page: readonly unknown[], limit = ROWS_AT_ONCE): boolean {
  return rows.length === page.length && page.length < limit
}

/** Returns for how many parcels one batch may look up waiting deliveries. */
function looksFor(endpoints: number): number {
  return Math.max(1, Math.floor(LOOKS_AT_ONCE / Math.max(1, endpoints)))
}

async function needsOf(tx: PassTx, backlogs: readonly number[], rows: readonly { readonly parcelId: number }[]): Promise<Needs> {
  const awaited = await tx.awaitedParcels(backlogs, [...new Set(rows.map(({ parcelId }) => parcelId))])
  return { awaited, isBehind: (await tx.listEndpoints()).some(({ queuedTo }) => queuedTo !== null) }
}
