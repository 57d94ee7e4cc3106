import type { Job } from '../../core/domain/admin/job.ts'
import type { TallyFlush } from '../../core/domain/admin/tally.ts'
import { newHealth, resetHealth } from '../../core/domain/delivery/endpoint-health.ts'
import type { EndpointState } from '../../core/domain/delivery/endpoint-state.ts'
import { defaultSettings, noFilters } from '../../core/domain/delivery/endpoint-state.ts'
import { OPERATOR_NAME, type OperatorEvent } from '../../core/domain/delivery/operator-event.ts'
import { CARRIER_TROUBLE } from '../../core/domain/polling/carrier-answer.ts'
import { type Posted, recordOperatorEvent } from '../../core/flow/audit.tx.ts'
import { takeEndedJobs } from '../../core/store/admin/jobs.ts'
import { beginTrouble, endTrouble, listTroubles, saveTrouble, takeQuarantineCounts } from '../../core/store/admin/operations.ts'
import { addReportNote } from '../../core/store/admin/report-note-rows.ts'
import { addTallies, noteFlush } from '../../core/store/admin/tally-rows.ts'
import { listNewestPushes } from '../../core/store/ingest/inbox-lists.ts'
import type { Transactions, WriteTx } from '../../core/store/write-store.ts'

import {
  DOWN_SUBJECTS,
  type Down,
  NEWEST_PUSHES,
  NOT_UNDERSTOOD,
  QUARANTINE_SUBJECTS,
  TOLD_SUBJECTS,
  type TroubleBegun,
  type TroubleEnded,
  tellQuarantined,
  tellUnderstood,
} from '../problems/trouble.ts'
import { listRefused, removeRefused, saveRefused } from '../refused/refused-pushes.rows.ts'
import { notStoredSince, type StoredRefused, staleRefused } from '../refused/refused-pushes.rules.ts'

/** One transaction reads at most this many counts of quarantined pushes. */
const TOLD_AT_ONCE = 500

/** Only the replica with this role may make the call; absent: any replica may. */
interface OfRole {
  readonly ofRole?: 'poller' | 'janitor'
}

/**
 * Creates the verbs that notify operators, and that save what they look at. Operators are notified once of each change of state: in
 * the transaction that stores the change, or in a later one that finds the change unreported.
 */
export function createTellOperators(store: Transactions) {
  return {
    /** Notifies operators that a trouble has begun, unless they were notified of it before. Returns whether it notified them now. */
    beginTrouble: ({ subject, event, nowMs, ofRole, isPosted }: TroubleBegun & OfRole & Posted) =>
      store.transaction(
        async (tx) => {
          // The end tells the same time as the beginning, even if operators were told of it later.
          const hasBegun = await beginTrouble(tx, subject, 'since' in event ? Date.parse(event.since) : nowMs)
          if (hasBegun) await recordOperatorEvent(tx, event, nowMs, isPosted)
          return hasBegun
        },
        ofRole === undefined ? {} : { ofRole },
      ),

    /** Notifies operators that a trouble is over, if they were notified that it had begun. Returns whether it notified them now. */
    endTrouble: ({ subject, event, nowMs, ofRole }: TroubleEnded & OfRole) =>
      store.transaction(
        async (tx) => {
          const sinceMs = await endTrouble(tx, subject)
          if (sinceMs === null) return false
          if (subject === CARRIER_TROUBLE) addReportNote(tx, [{ kind: 'outage', fromMs: sinceMs, untilMs: nowMs }], nowMs)
          const since = new Date(sinceMs).toISOString()
          const told: OperatorEvent =
            event.event === 'disk_usable'
              ? { ...event, since, refused: notStoredSince(await listRefused(tx), sinceMs), down: await takeDown(tx, sinceMs) }
              : { ...event, since }
          await recordOperatorEvent(tx, told, nowMs)
          return true
        },
        ofRole === undefined ? {} : { ofRole },
      ),

    /** Keeps when the relay did not run, for the event of the end of a full disk. */
    noteDown: ({ lastSeenMs, startedMs }: Down) =>
      store.transaction((tx) => saveTrouble(tx, { subject: `${DOWN_SUBJECTS}${startedMs}`, sinceMs: lastSeenMs, count: 0 })),

    /** Notifies operators of jobs that have ended and of pushes that were quarantined. Resolves with the number of events. */
    tellOperators: ({ nowMs }: { readonly nowMs: number }) =>
      store.transaction(
        async (tx) => {
          const ended = (await takeEndedJobs(tx)).filter(isTold)
          for (const job of ended) await recordOperatorEvent(tx, endOf(job), job.endedAtMs ?? nowMs)
          return ended.length + (await tellOfQuarantine(tx, nowMs))
        },
        { ofRole: 'janitor' },
      ),

    /** Adds counts to their hours and days. A repeated flush is added once. */
    addTallies: (flush: TallyFlush) =>
      store.transaction(async (tx) => {
        if (await noteFlush(tx, flush)) addTallies(tx, flush.additions)
      }),

    /** Saves spells (see `RefusedPushes`), replacing earlier states of the same spells, and deletes spells that ended long ago. */
    saveRefused: ({ spells, nowMs }: { readonly spells: readonly StoredRefused[]; readonly nowMs: number }) =>
      store.transaction(async (tx) => {
        for (const spell of staleRefused(await listRefused(tx), nowMs)) removeRefused(tx, spell)
        for (const spell of spells) saveRefused(tx, spell)
      }),
  }
}

async function takeDown(tx: WriteTx, sinceMs: number): Promise<Extract<OperatorEvent, { event: 'disk_usable' }>['down']> {
  const all = await listTroubles(tx, DOWN_SUBJECTS)
  for (const { subject } of all) await endTrouble(tx, subject)
  return all
    .map(({ subject, sinceMs: lastSeenMs }): Down => ({ lastSeenMs, startedMs: Number(subject.slice(DOWN_SUBJECTS.length)) }))
    .filter(({ startedMs }) => startedMs > sinceMs)
    .map(({ lastSeenMs, startedMs }) => ({
      lastSeenAt: new Date(lastSeenMs).toISOString(),
      startedAt: new Date(startedMs).toISOString(),
    }))
}

async function tellOfQuarantine(tx: WriteTx, nowMs: number): Promise<number> {
  const counts = await takeQuarantineCounts(tx, TOLD_AT_ONCE)
  const known = { troubles: await listTroubles(tx, QUARANTINE_SUBJECTS), told: await listTroubles(tx, TOLD_SUBJECTS) }
  const { events, kept, over } = tellQuarantined(known, counts, nowMs)
  for (const trouble of kept) await saveTrouble(tx, trouble)
  for (const subject of over) await endTrouble(tx, subject)
  for (const event of events) await recordOperatorEvent(tx, event, nowMs)
  return events.length + (await tellWhetherUnderstood(tx, counts.length > 0, nowMs))
}

/** Notifies operators if no push is understood any more, or if pushes are understood again. Returns the number of events. */
async function tellWhetherUnderstood(tx: WriteTx, hasQuarantined: boolean, nowMs: number): Promise<number> {
  const [known] = await listTroubles(tx, NOT_UNDERSTOOD)
  if (known === undefined && !hasQuarantined) return 0
  const event = tellUnderstood(known, await listNewestPushes(tx, NEWEST_PUSHES))
  if (event === null) return 0
  if (event.event === 'pushes_understood') await endTrouble(tx, NOT_UNDERSTOOD)
  else await saveTrouble(tx, { subject: NOT_UNDERSTOOD, sinceMs: 'since' in event ? Date.parse(event.since) : nowMs, count: 0 })
  await recordOperatorEvent(tx, event, nowMs)
  return 1
}

/**
 * Whether operators are notified that a job has ended. A backup is daily work, and its failure has an event of its own, so operators are
 * notified only of a cancelled backup.
 */
function isTold({ task, state }: Job): boolean {
  return task.kind !== 'backup' || state === 'cancelled'
}

function endOf({ jobId, task, state, done, failure }: Job): OperatorEvent {
  return { event: 'job_ended', job: { id: String(jobId), kind: task.kind }, state, done, failure }
}

const SCHEDULE_MS = [5, 30, 120, 600, 1800, 3600].map((seconds) => seconds * 1000)

/** Creates the endpoint for operator events or sets its URL, as configured. It gets no events about parcels. */
export async function saveOperator(tx: WriteTx, url: string, nowMs: number): Promise<void> {
  const known = (await tx.listEndpoints()).find(({ origin }) => origin === 'operator')
  const state: EndpointState = {
    endpoint: {
      ...defaultSettings,
      id: known?.endpoint.id ?? '',
      name: OPERATOR_NAME,
      url,
      filters: { ...noFilters, status: [] },
      scheduleMs: SCHEDULE_MS,
    },
    origin: 'operator',
    disabled: null,
    health:
      known === undefined
        ? newHealth
        : known.disabled === null || known.disabled === 'unnamed'
          ? known.health
          : resetHealth(known.health, nowMs),
    keys: null,
    queuedTo: null,
    firstSequence: 0,
    beganAtMs: known?.beganAtMs ?? nowMs,
    backfilled: null,
  }
  await tx.saveEndpoint(state)
}
