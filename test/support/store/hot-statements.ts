import { listRefused, removeRefused, saveRefused } from '../../../src/console/refused/refused-pushes.rows.ts'
import { takeEndedJobs } from '../../../src/core/store/admin/jobs.ts'
import { addOperatorEvent, endTrouble, listTroubles, saveTrouble, takeQuarantineCounts } from '../../../src/core/store/admin/operations.ts'
import { addTallies, findCounted, noteFlush, pruneTallies } from '../../../src/core/store/admin/tally-rows.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import { countWaiting } from '../../../src/core/store/delivery/endpoint-backlogs.ts'
import { recordedAt } from '../../../src/core/store/delivery/feed.ts'
import { findProbe, hastenDelivery, waitsForOthers } from '../../../src/core/store/delivery/next-deliveries.ts'
import { skipDelivery, unskipDelivery } from '../../../src/core/store/delivery/settlements.ts'
import type { Session } from '../../../src/core/store/engine.ts'
import { listMarked } from '../../../src/core/store/history/contents.ts'
import { dismissHeld, dismissPush, listHeld } from '../../../src/core/store/ingest/held-pushes.ts'
import { listNewestPushes } from '../../../src/core/store/ingest/inbox-lists.ts'
import { listEndedByClock } from '../../../src/core/store/polling/schedule-shift.ts'
import { createReadStore, type ReadEngine, type ReadSide } from '../../../src/core/store/read-store.ts'
import { compileForSqlite, openSqliteReader, openSqliteWriter } from '../../../src/core/store/sqlite/sqlite.ts'
import { createSqliteWriteStore } from '../../../src/core/store/sqlite/sqlite-write-store.ts'
import type { Statement } from '../../../src/core/store/statement.ts'
import { createParcelVersions } from '../../../src/server/postgres/history/postgres-parcels.ts'
import { createPostgresReader, createPostgresWriter } from '../../../src/server/postgres/postgres.ts'
import { compileForPostgres } from '../../../src/server/postgres/postgres-dialect.ts'
import { createPostgresWriteStore } from '../../../src/server/postgres/postgres-write-store.ts'
import {
  correctParcels,
  listRebuildable,
  listStoredPushes,
  loadStoredParcels,
  pagePushes,
} from '../../../src/upkeep/rebuild/rebuilding.rows.ts'
import { addRefusal, listRefusals } from '../../../src/upkeep/refusals/refusals.rows.ts'
import {
  loadRetention,
  lockRetention,
  pruneOperations,
  retireParcels,
  saveRetention,
  withAgedRows,
} from '../../../src/upkeep/retention/remove-aged.rows.ts'
import { SQLITE_HOOKS } from '../../../src/upkeep/sqlite-engine.ts'
import { trackingIdOf } from '../history/seeded-observations.ts'
import { openTestPool } from './postgres-pool.ts'
import { REFUSAL, REFUSED } from './refusal.ts'
import { writeSeededStore } from './seeded-store.ts'

type AnyStatement = Statement<never, unknown>

function noting<S extends Session>(session: S, seen: Set<AnyStatement>): S {
  return {
    ...session,
    all: (statement, params) => session.all(note(statement), params),
    run: (statement, params) => session.run(note(statement), params),
    enqueueWrite: (statement, params) => session.enqueueWrite(note(statement), params),
  }
  function note<Kind extends AnyStatement>(statement: Kind): Kind {
    seen.add(statement)
    return statement
  }
}

function notingReads(engine: ReadEngine, seen: Set<AnyStatement>, inSnapshots = seen): ReadEngine {
  return {
    ...engine,
    session: noting(engine.session, seen),
    snapshot: (work) => engine.snapshot((session) => work(noting(session, inSnapshots))),
  }
}

const NOW = Date.UTC(2026, 2, 2)

async function useStore(engine: Engine, place: string): Promise<void> {
  await writeSeededStore(place, engine)
  const store = await engine.openWriteStore(place)
  // The seeded store has not used these statements, for example because no endpoint failed for long.
  await store.transaction(async (tx) => {
    const look = { endpointId: '2', underWay: [7], limit: 5, nowMs: NOW }
    await tx.findNextDeliveries({ ...look, round: 9, wokenAtMs: NOW })
    await findProbe(tx, { ...look, exceptParcelIds: [7], beforeRound: 3 })
    await countWaiting(tx, '2', 10_000)
    await waitsForOthers(tx, '2', [7])
    await hastenDelivery(tx, 1)
    await skipDelivery(tx, 1)
    const skipped = await tx.findSkipped(null)
    await tx.findSkipped(['2'])
    unskipDelivery(tx, 1)
    tx.saveSettlements([], skipped.length > 0 ? skipped : [{ deliveryId: 1, endpointId: '2' }], NOW)
    const due = await tx.duePolls({ nowMs: NOW, limit: 5, after: null })
    await tx.pollCandidates({ nowMs: NOW, parcelIds: due.map(({ parcelId }) => parcelId) })
    for (const reason of [null, 'schema']) await listHeld(tx, { state: 'quarantined', reason, after: 0, upTo: 9, limit: 5 })
    await dismissPush(tx, 3)
    for (const reason of [null, 'too_deep']) await dismissHeld(tx, { reason, after: 0, upTo: 0, limit: 5 })
    addRefusal(tx, REFUSAL)
    for (const spell of REFUSED) saveRefused(tx, spell)
    for (const spell of await listRefused(tx)) removeRefused(tx, spell)
    const delivery = { endpointId: '2', parcelId: 7, sequence: 1_000_000, inboxId: null, toldIn: 999_999, nowMs: NOW }
    await tx.queueFeed({ composed: [], deliveries: [delivery] })
    await recordedAt(tx, 999_998)
    const rebuildable = (await listRebuildable(tx, { after: 0, limit: 50 })).map(({ parcelId }) => parcelId)
    await listStoredPushes(tx, rebuildable)
    await pagePushes(tx, { parcelId: rebuildable[0] ?? 0, after: '', limit: 5 })
    for (const { state, sightings, answers } of await loadStoredParcels(tx, rebuildable)) {
      // No row has this sequence or this language, so nothing is deleted or changed.
      const dropped = sightings.slice(0, 1).map((kept) => ({ ...kept, sequence: -1 }))
      const corrected = answers.slice(0, 1).map((one) => ({ ...one, answer: { ...one.answer, language: 'none' } }))
      await correctParcels(tx, [
        { state, isRescheduled: false, dropped, saved: sightings, identifiers: [], answers: corrected, feed: [], correctedAt: null },
      ])
    }
  })
  await store.transaction(async (tx) => {
    for (const job of await takeEndedJobs(tx)) addOperatorEvent(tx, { event: 'credentials_refused' }, job.createdAtMs)
    await takeQuarantineCounts(tx, 5)
    await listNewestPushes(tx, 5)
    for (const trouble of await listTroubles(tx, 'credentials')) await saveTrouble(tx, trouble)
    await endTrouble(tx, 'credentials')
    const additions = [
      { kind: 'pushes', fromMs: NOW, counts: { recorded: 1 } },
      { kind: 'disk', fromMs: NOW, counts: { free: 1 } },
    ] as const
    if (await noteFlush(tx, { by: 'relay', number: 1, additions })) addTallies(tx, additions)
    await findCounted(tx, 'hour', 191)
    await pruneTallies(tx, 'hour', NOW, 5)
    await pruneTallies(tx, 'day', NOW + 1, 5)
    await pruneOperations(tx, NOW + 1, 1)
    await pruneOperations(tx, NOW + 1, 500)
  })
  await store.transaction(async (within) => {
    const tx = withAgedRows(within)
    const page = { beforeMs: NOW, after: { atMs: 1, id: 1 }, limit: 5 }
    const aged = (await tx.agedDeliveries(page)).map(({ deliveryId }) => deliveryId)
    tx.cancelDeliveries(aged, NOW)
    await tx.removeDeliveries((await tx.endedDeliveries(page)).map(({ deliveryId }) => deliveryId))
    tx.clearPushes({ cleared: (await tx.agedPushes(page)).map(({ inboxId }) => inboxId), closed: [3] })
    await tx.clearAnswers((await tx.agedAnswers(page)).map((answer) => ({ ...answer, decidesOrder: true })))
    tx.removePushes((await tx.unrecordedPushes(page)).map(({ inboxId }) => inboxId))
    const { parcelId } = await tx.newest()
    tx.dropMarks({ beforeMs: 1, afterMs: NOW })
    tx.keepMark({ atMs: NOW, sequence: 1, parcelId })
    await tx.ageMarks()
    const numbers = { after: 0, upTo: 1_000_000, limit: 5 }
    const [sequence = 1] = await tx.agedFeed(numbers)
    await tx.pruneFeed(sequence)
    tx.removeComposed((await tx.composedEvents(numbers)).flatMap(({ sequence: one, isNamed }) => (isNamed ? [] : [one])))
    const [parcel] = await tx.parcelAges(numbers)
    const ids = [parcel?.parcelId ?? 1]
    await tx.awaitedParcels([...(await tx.endpointsWithBacklog()), 2], ids)
    await tx.deliveredParcels(ids)
    await tx.replayablePushes([1, 2])
    await tx.clockRecord()
    await listEndedByClock(tx, { byMs: 1, sinceMs: 0, nowMs: NOW, afterParcelId: 0, limit: 5 })
    await tx.holdParcels(ids)
    await retireParcels(tx, ids, 500)
    const texts = await listMarked(tx, { after: 0, limit: 5 })
    tx.removeTexts({ unused: [{ id: 1_000_000, json: '', isUsed: false }], used: [...texts, { id: 1_000_001, json: '', isUsed: true }] })
    await saveRetention(tx, await lockRetention(tx))
  })
  await store.close()
  const reads = engine.openReadStore(place)
  await loadRetention(reads.session)
  for (let parcel = 0; parcel < 5; parcel++) await reads.findParcel(trackingIdOf(parcel))
  await reads.parcelVersion?.(7)
  await reads.readFeed({ after: 0, limit: 500 })
  await reads.countBacklogs(['2'])
  await reads.listOldestWaiting()
  await reads.findQueued({ endpointId: '2', events: [{ parcelId: 7, sequence: 1 }] })
  await reads.hasProbe({ endpointId: '2', exceptParcelIds: [7], beforeRound: 3 })
  const page = { before: null, limit: 5 }
  for (const by of [null, 'admin']) {
    for (const action of [null, 'endpoint.tested']) {
      for (const targets of [null, [{ kind: 'endpoint', id: '1' }]]) await reads.listActions({ ...page, by, action, targets })
    }
  }
  await reads.existingTargets(['parcel', 'delivery', 'push'].map((kind) => ({ kind, id: '1' })))
  await listRefusals(reads.session, page)
  await reads.loadNames([1, 2])
  for (const state of [null, 'recorded', 'quarantined', 'expired', 'dismissed'] as const) {
    for (const reason of [null, 'schema']) {
      for (const parcel of [null, trackingIdOf(1)]) {
        await reads.listInbox({ ...page, state, reason, parcel })
        await reads.listInbox({ ...page, state, reason, parcel, fromMs: NOW - 1, toMs: NOW + 1 })
      }
    }
  }
  await reads.inspectPush(3)
  for (const state of ['quarantined', 'expired'] as const) await reads.countHeld(state)
  await reads.listTallies({ span: 'hour', kind: 'pushes', fromMs: 0, toMs: NOW })
  await reads.listFailures({ endpointId: '2', sinceMs: 0 })
  await reads.lastFailures(['1', '2'])
  const list = { ...page, endpointId: null, parcelId: null, state: null }
  await reads.listDeliveries(list)
  await reads.listDeliveries({ ...list, endpointId: '2', queued: { fromMs: 0, toMs: NOW } })
  const selection = { endpointId: '2', states: ['dead'], fromSequence: 0, deliveryId: null, sequence: null, parcelId: null } as const
  for (const fromMs of [0, 1]) await reads.countReplayable({ selection: { ...selection, fromMs }, limit: 5, untilMs: NOW })
  await lookAtPages(reads)
  for (const event of [null, 'credentials_refused'] as const) await reads.listOperatorEvents({ ...page, event, fromMs: null, toMs: null })
  await reads.close()
}

async function lookAtPages(reads: ReadSide): Promise<void> {
  await reads.counts(NOW)
  await reads.countQuarantined()
  await listRefused(reads.session)
  await reads.listStatuses()
  await reads.listEventValues()
  await reads.listEndpoints()
  await reads.inspectParcel(trackingIdOf(1))
  await reads.findDelivery(1)
  await reads.listJobs({ before: null, limit: 5 })
  await reads.findJob(1)
  const query = { prefix: null, status: null, stopped: null, after: null, limit: 5 }
  for (const asked of [
    query,
    { ...query, prefix: '3730' },
    { ...query, status: 'Created' },
    { ...query, stopped: 'delivered' as const },
    { ...query, reference: 'ORDER-1' },
  ]) {
    await reads.listParcels(asked)
    await reads.countParcels(asked, 5)
  }
}

const COUNTED =
  /^\s*select count\(\*\) as "count" from (?:"parcel"(?: where "next_poll_at_ms" (?:is not null|<= \S+))?|"inbox" where "state" = 1)\s*$/

/** Whether a statement counts most rows of a table, for the overview and the metrics. `npm run bench -- portal` measures how long that takes. */
export function isWholeCount(statement: string): boolean {
  return COUNTED.test(statement)
}

const USED = { named: true }

/** Uses a store on PostgreSQL. Returns the statements that it sent outside transactions, and so without the planner settings of transactions. */
export async function sentAloneOnPostgres(url: string): Promise<readonly string[]> {
  const alone = new Set<AnyStatement>()
  const pool = openTestPool(url, 6)
  const writer = createPostgresWriter(pool, USED)
  const watched: Engine = {
    name: 'postgres',
    openWriteStore: async () => ({
      ...createPostgresWriteStore(writer),
      close: async () => undefined,
    }),
    openReadStore() {
      const engine = notingReads(createPostgresReader(openTestPool(url, 2), USED), alone, new Set())
      return { ...createReadStore(engine), parcelVersion: createParcelVersions(engine.session) }
    },
  }
  await useStore(watched, url)
  return [...new Set([...alone].map((statement) => compileForPostgres(statement).text))]
}

/** Uses a store on SQLite. Returns all statements as they were prepared. */
export async function usedOnSqlite(path: string): Promise<readonly string[]> {
  const seen = new Set<AnyStatement>()
  const watched: Engine = {
    name: 'sqlite',
    async openWriteStore() {
      const engine = await openSqliteWriter(path, SQLITE_HOOKS)
      const store = createSqliteWriteStore({ ...engine, session: noting(engine.session, seen) })
      return { ...store, close: () => engine.close() }
    },
    openReadStore: () => createReadStore(notingReads(openSqliteReader(path), seen)),
  }
  await useStore(watched, path)
  return [...new Set([...seen].map((statement) => compileForSqlite(statement).sql))]
}
