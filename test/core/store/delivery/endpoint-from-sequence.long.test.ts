import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openWriteSide } from '../../../../src/assembly/open-write-side.ts'
import type { ClaimedDelivery } from '../../../../src/core/domain/delivery/dispatch-round.ts'
import { noFilters } from '../../../../src/core/domain/delivery/endpoint-state.ts'
import { parsePush } from '../../../../src/core/domain/ingest/parse-push.ts'
import type { WriteSide } from '../../../../src/core/flow/write-side.ts'
import { postgres } from '../../../../src/server/postgres/postgres-engine.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../../support/history/builders.ts'
import { observations } from '../../../support/history/observations.ts'
import { incomingOf, strictLog } from '../../../support/history/observed.ts'
import { deliverOptions, recordOptions } from '../../../support/history/policy.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { runsOn } from '../../../support/runner/long-form.ts'
import { engines, newPlace, withPlace } from '../../../support/store/engines.ts'
import { changeStoredRows, pruneStoredFeed, storedRows } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

const at = (minute: number, trackingIds = ['1001']) => ({ eventTime: `2026-03-01T10:0${minute}:00.000Z`, trackingIds })
const bodiesOf = (deliveries: readonly ClaimedDelivery[]) => deliveries.map(({ body }) => String(body))
const eventsOf = (deliveries: readonly ClaimedDelivery[]) => deliveries.map(({ sequence, body }) => [sequence, String(body)])

async function replayFeed(writes: WriteSide, limit = 100): Promise<number> {
  for (let rounds = 1; ; rounds++) if ((await writes.replayFeed({ limit, nowMs: NOON })).isDone) return rounds
}

describe.each(engines)('endpoints that start at a sequence on $name', (engine) => {
  test('7.4: a new endpoint gets only new events, or all events from a chosen sequence', async () => {
    const { push, writes } = await openStore(NOON, engine)
    for (const minute of [3, 1, 2]) await push(at(minute))
    const [now, all, second] = [
      await addEndpoint(writes, NOON),
      await addEndpoint(writes, NOON, { name: 'all', from: 0 }),
      await addEndpoint(writes, NOON, { name: 'second', from: 2 }),
    ]
    await replayFeed(writes)
    expect(await now.take()).toEqual([])
    expect(bodiesOf(await all.take())).toEqual([3, 1, 2].map((minute) => String(pushBody(at(minute)))))
    expect(bodiesOf(await second.take())).toEqual([1, 2].map((minute) => String(pushBody(at(minute)))))
    await push(at(5))
    for (const { take } of [now, all, second]) expect(bodiesOf(await take())).toEqual([String(pushBody(at(5)))])
  })

  test('7.3: new events queue behind older ones that are still being queued', async () => {
    const { push, writes } = await openStore(NOON, engine)
    for (const minute of [1, 2, 3, 4]) await push(at(minute))
    const { take } = await addEndpoint(writes, NOON, { from: 1 })
    await writes.replayFeed({ limit: 2, nowMs: NOON })
    await push(at(5))
    const first = await take()
    expect(bodiesOf(first)).toEqual([1, 2].map((minute) => String(pushBody(at(minute)))))
    await replayFeed(writes, 2)
    const rest = await take()
    expect(bodiesOf(rest)).toEqual([3, 4, 5].map((minute) => String(pushBody(at(minute)))))
    const chain = [...first, ...rest]
    for (const [place, { previousSequence }] of chain.entries()) expect(previousSequence).toBe(chain[place - 1]?.sequence ?? 0)
  })

  test('queueing older events resumes after a restart, and queues none twice', async () => {
    const path = await newPlace(engine)
    const clock = { now: () => NOON, monotonic: () => performance.now() }
    const open = () => openWriteSide({ sqlitePath: path, engine, record: recordOptions, deliver: deliverOptions }, clock, strictLog)
    const first = await open()
    const push = (writes: WriteSide, minute: number) =>
      writes.record([parsePush({ body: pushBody(at(minute)), contentEncoding: null, receivedAtMs: NOON, keyIndex: 0 })])
    for (const minute of [1, 2, 3, 4, 5]) await push(first, minute)
    const { id } = await addEndpoint(first, NOON, { from: 0 })
    await first.replayFeed({ limit: 2, nowMs: NOON })
    await first.close()
    const second = await open()
    await push(second, 6)
    // On PostgreSQL other replicas may write, so the endpoint has caught up only after one more round has found nothing.
    expect(await replayFeed(second, 2)).toBe(engine.name === postgres.name ? 4 : 3)
    await second.close()
    const inOrder = 'select sequence from delivery where endpoint_id = ? order by id'
    const queued = await storedRows<{ sequence: number }>(path, inOrder, Number(id))
    expect(queued.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6])
  })

  test('filters apply to older events, and only endpoints with backfill get backfill', async () => {
    const { push, poll, writes } = await openStore(NOON, engine)
    await poll({ statuses: [{ eventTimestamp: '2026-03-01T09:00:00Z' }] })
    await push({ ...at(1), status: 'DeliverySucceeded', detailedStatus: 'DeliverySucceededMailbox' })
    await poll({ askedAtMs: NOON + 1, statuses: [{ eventTimestamp: '2026-03-01T11:00:00Z' }] })
    const endpoints = [
      await addEndpoint(writes, NOON, { name: 'plain', from: 0 }),
      await addEndpoint(writes, NOON, { name: 'backfill', from: 0, backfill: true }),
      await addEndpoint(writes, NOON, { name: 'delivered', from: 0, filters: { ...noFilters, status: ['DeliverySucceeded'] } }),
    ]
    await replayFeed(writes)
    const times = []
    for (const { take } of endpoints) times.push(bodiesOf(await take()).map((body) => /T(\d\d:\d\d):/.exec(body)?.[1]))
    expect(times).toEqual([['10:01', '11:00'], ['09:00', '10:01', '11:00'], ['10:01']])
  })

  test('a push whose bytes were removed by retention is composed like a polled entry', async () => {
    const { push, writes, path } = await openStore(NOON, engine)
    await push(at(1))
    await changeStoredRows(path, 'update inbox set body = null')
    const { take } = await addEndpoint(writes, NOON, { from: 0 })
    await replayFeed(writes)
    expect((await take()).map(({ body }) => JSON.parse(String(body)))).toMatchObject([
      { eventTime: at(1).eventTime, trackingIds: ['1001'] },
    ])
  })

  test('an endpoint cannot start at a sequence that is pruned or not reached yet', async () => {
    const { push, writes, path } = await openStore(NOON, engine)
    for (const minute of [1, 2, 3]) await push(at(minute))
    await pruneStoredFeed(path, 2)
    const add = async (from: number) => {
      const id = await writes.reserveEndpoint(NOON)
      const settings = {
        name: `from ${from}`,
        url: 'http://shop.internal/',
        enabled: true,
        signature: 'carrier',
        filters: noFilters,
      } as const
      const rest = {
        events: ['entry'] as const,
        backfill: false,
        ratePerSecond: null,
        concurrency: null,
        scheduleMs: null,
        refusals: 'wait' as const,
        headers: [],
      }
      return await writes.addEndpoint({ id, settings: { ...settings, ...rest }, key: 'sealed', from, nowMs: NOON })
    }
    expect(await add(2)).toEqual({ kind: 'from_gone', oldest: 3 })
    expect(await add(0)).toEqual({ kind: 'from_gone', oldest: 3 })
    expect(await add(5)).toEqual({ kind: 'from_ahead', last: 3 })
    expect(await add(3)).toMatchObject({ kind: 'done', state: { queuedTo: 2 } })
    expect(await add(4)).toMatchObject({ kind: 'done', state: { queuedTo: null } })
  })

  test('an endpoint that starts at the first sequence gets exactly what an older endpoint got', async () => {
    const clock = { now: () => Date.UTC(2026, 2, 1, 15), monotonic: () => performance.now() }
    await fc.assert(
      fc.asyncProperty(observations, fc.boolean(), (all, backfill) =>
        withPlace(engine, async (path) => {
          const writes = await openWriteSide({ sqlitePath: path, engine, record: recordOptions, deliver: deliverOptions }, clock, strictLog)
          const early = await addEndpoint(writes, clock.now(), { name: 'early', backfill })
          for (const one of all) await writes.record([incomingOf(one, clock.now())])
          const late = await addEndpoint(writes, clock.now(), { name: 'late', backfill, from: 0 })
          await replayFeed(writes, 3)
          const bySequence = (of: readonly ClaimedDelivery[]) => eventsOf(of.toSorted((a, b) => a.sequence - b.sequence))
          expect(bySequence(await late.take())).toEqual(bySequence(await early.take()))
          await writes.close()
        }),
      ),
      { numRuns: runsOn(engine, 80, 6), seed: 20261123 },
    )
  })
})
