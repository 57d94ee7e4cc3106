import { outlivedBy } from '../../core/domain/admin/clock-record.ts'
import type { Job } from '../../core/domain/admin/job.ts'
import type { Actor } from '../../core/domain/admin/operator-action.ts'
import type { TimeCursor } from '../../core/domain/delivery/operator-event.ts'
import { AppError } from '../../core/domain/errors.ts'
import type { Reads, Relay, Writes } from '../../core/flow/relay-part.ts'
import { type AgedReads, createAgedReads } from './aged-rows.rows.ts'
import { loadRetention } from './remove-aged.rows.ts'
import {
  decideFeed,
  decideOverdue,
  decideParcels,
  decidePushBytes,
  decideUnrecorded,
  givenBefore,
  isParcelPast,
  type Needs,
  type Retention,
  type RetentionStage,
  type RetentionState,
} from './retention.rules.ts'

/** How many rows of one kind a retention pass would remove now. `isMore`: there may be more, because only some of the rows were looked at. */
export interface WouldGo {
  readonly count: number
  readonly isMore: boolean
}

/** The stages that a preview leaves out, because their rows depend on the stages before them or are not worth counting. */
const UNCOUNTED_STAGES = ['texts', 'composed', 'audit'] as const satisfies readonly RetentionStage[]
type UncountedStage = (typeof UNCOUNTED_STAGES)[number]

/** What a retention pass would remove, as far as the relay can tell without removing anything. */
export type WouldGoByStage = Readonly<Record<Exclude<RetentionStage, UncountedStage>, WouldGo>>

export interface RetentionView extends RetentionState {
  readonly retention: Retention
}

export type ManageRetention = ReturnType<typeof createManageRetention>

export interface ManageRetentionPorts extends Pick<Relay, 'clock'>, Reads<'session' | 'listEndpoints'>, Writes<'startJob'> {
  /** The setting as it is now. A reload of the config may change it. */
  readonly retention: () => Retention
  /** Called when a job was queued. */
  readonly work: () => void
  /** Lets all other waiting work run first. */
  readonly yieldToOthers: () => Promise<unknown>
}

/** A preview looks at up to this many rows of a kind, and reads `PAGE` of them at a time. */
const LOOKED_AT_MAX = 5000
const PAGE = 250

export function createManageRetention(ports: ManageRetentionPorts) {
  const { reads, write, clock, retention, work } = ports
  return {
    view: async (): Promise<RetentionView> => ({ retention: retention(), ...(await loadRetention(reads.session)) }),
    /** Counts the rows that a pass would remove, up to a limit. */
    wouldGo: (): Promise<WouldGoByStage> => lookAtAll(ports, clock.now()),
    /** Starts a pass as a job, or continues the one that is under way. Throws `too_many_jobs`. */
    async start(by: Actor): Promise<Job> {
      const nowMs = clock.now()
      const action = { atMs: nowMs, by, action: 'retention.ordered', target: null, detail: {} } as const
      const job = await write.startJob({ task: { kind: 'retention' }, by: by.name, nowMs, action })
      if (job === null) throw new AppError('too_many_jobs', 'Too many jobs have not ended. Wait for them, or cancel some.')
      work()
      return job
    },
  }
}

async function lookAtAll(ports: ManageRetentionPorts, nowMs: number): Promise<WouldGoByStage> {
  const reads = createAgedReads(ports.reads.session)
  const retention = ports.retention()
  const { rawMs, historyMs, deliveriesMs, heldMs } = retention
  const [endpoints, backlogs, marks] = [await ports.reads.listEndpoints(), await reads.endpointsWithBacklog(), await reads.ageMarks()]
  const behind = endpoints.flatMap(({ endpoint, queuedTo }) => (queuedTo === null ? [] : [{ endpointId: endpoint.id, queuedTo }]))
  const needsOf = async (rows: readonly { readonly parcelId: number }[]): Promise<Needs> => ({
    awaited: await reads.awaitedParcels(backlogs, [...new Set(rows.map(({ parcelId }) => parcelId))]),
    isBehind: behind.length > 0,
  })
  const outlived = outlivedBy(await reads.clockRecord(), heldMs)
  const given = givenBefore(marks, nowMs - historyMs)
  const after = (cursor: TimeCursor | null) => cursor?.id ?? 0
  return {
    overdue: await look(ports, (cursor) => reads.agedDeliveries({ beforeMs: nowMs - heldMs, after: cursor, limit: PAGE }), {
      cursorOf: ({ queuedAtMs, deliveryId }) => ({ atMs: queuedAtMs, id: deliveryId }),
      count: (rows) => decideOverdue(rows, nowMs, retention, outlived).cancelled.length,
    }),
    deliveries: await look(ports, (cursor) => reads.endedDeliveries({ beforeMs: nowMs - deliveriesMs, after: cursor, limit: PAGE }), {
      cursorOf: ({ settledAtMs, deliveryId }) => ({ atMs: settledAtMs, id: deliveryId }),
      count: (rows) => rows.length,
    }),
    pushBytes: await look(ports, (cursor) => reads.agedPushes({ beforeMs: nowMs - rawMs, after: cursor, limit: PAGE }), {
      cursorOf: ({ receivedAtMs, inboxId }) => ({ atMs: receivedAtMs, id: inboxId }),
      async count(rows) {
        const replayable = await reads.replayablePushes(rows.map(({ inboxId }) => inboxId))
        return decidePushBytes(rows, { ...(await needsOf(rows)), replayable }, retention, outlived).cleared.length
      },
    }),
    answerBytes: await countAnswers(reads, nowMs - rawMs),
    parcels: await look(ports, (cursor) => reads.parcelAges({ after: after(cursor), upTo: given.parcelId, limit: PAGE }), {
      cursorOf: ({ parcelId }) => ({ atMs: 0, id: parcelId }),
      async count(rows) {
        const past = rows.filter((row) => isParcelPast(row, nowMs, retention))
        const delivered = await reads.deliveredParcels(past.map(({ parcelId }) => parcelId))
        const needs = { ...(await needsOf(past)), delivered }
        return decideParcels(past, needs, nowMs, retention, outlived).retired.length
      },
    }),
    unrecorded: await look(ports, (cursor) => reads.unrecordedPushes({ beforeMs: nowMs - historyMs, after: cursor, limit: PAGE }), {
      cursorOf: ({ receivedAtMs, inboxId }) => ({ atMs: receivedAtMs, id: inboxId }),
      count: (rows) => decideUnrecorded(rows, retention, outlived).removed.length,
    }),
    feed: await countFeed(reads, decideFeed(marks, behind, nowMs, retention, outlived).upTo),
  }
}

interface Looking<Row> {
  readonly cursorOf: (row: Row) => TimeCursor
  readonly count: (rows: readonly Row[]) => number | Promise<number>
}

/** Reads pages of rows, up to `LOOKED_AT_MAX` rows, and counts the rows that a pass would remove. */
async function look<Row>(
  { yieldToOthers }: Pick<ManageRetentionPorts, 'yieldToOthers'>,
  read: (cursor: TimeCursor | null) => Promise<readonly Row[]>,
  { cursorOf, count }: Looking<Row>,
): Promise<WouldGo> {
  let cursor: TimeCursor | null = null
  let found = 0
  for (let looked = 0; looked < LOOKED_AT_MAX; looked += PAGE) {
    const rows = await read(cursor)
    found += await count(rows)
    const last = rows.at(-1)
    if (rows.length < PAGE || last === undefined) return { count: found, isMore: false }
    cursor = cursorOf(last)
    await yieldToOthers()
  }
  return { count: found, isMore: true }
}

async function countAnswers(reads: Pick<AgedReads, 'agedAnswers'>, beforeMs: number): Promise<WouldGo> {
  const { length } = await reads.agedAnswers({ beforeMs, limit: LOOKED_AT_MAX + 1 })
  return { count: Math.min(length, LOOKED_AT_MAX), isMore: length > LOOKED_AT_MAX }
}

async function countFeed(reads: Pick<AgedReads, 'agedFeed' | 'feedPrunedTo'>, upTo: number): Promise<WouldGo> {
  const { length } = await reads.agedFeed({ after: await reads.feedPrunedTo(), upTo, limit: LOOKED_AT_MAX + 1 })
  return { count: Math.min(length, LOOKED_AT_MAX), isMore: length > LOOKED_AT_MAX }
}
