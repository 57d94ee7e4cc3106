import { describe, expect, test } from 'vitest'
import { addEndpoint, endpointOf, endpointSettings } from '../../../support/delivery/stored-endpoint.ts'
import { aPoll, pushBody } from '../../../support/history/builders.ts'
import { cadence } from '../../../support/history/policy.ts'
import { HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { upgradeToBegan } from '../../../support/store/earlier-schema.ts'
import { engines, newPlace } from '../../../support/store/engines.ts'
import { changeStoredRows, pruneStoredFeed, storedNumber, storedRows } from '../../../support/store/stored-rows.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

const timeOf = (atMs: number) => new Date(atMs).toISOString()

/** A poll of a parcel that is watched only now, so that everything it finds is older than the relay's knowledge of the parcel. */
const pollOf = (id: string, ...times: readonly number[]) => ({
  kind: 'poll' as const,
  observation: aPoll({
    asked: id,
    trackingIds: [id],
    language: 'en',
    askedAtMs: NOON,
    statuses: times.map((atMs) => ({ eventTimestamp: timeOf(atMs), status: 'TerminalArrived' })),
  }),
  watch: true,
})
const pushOf = (id: string, atMs: number) =>
  incomingPush(pushBody({ trackingIds: [id], eventTime: timeOf(atMs), status: 'TerminalArrived', texts: { en: 'Arrived' } }), NOON)
const timesIn = (taken: readonly { readonly body: unknown }[]) =>
  taken.map(({ body }) => Date.parse(/"eventTime":"([^"]+)"/.exec(String(body))?.[1] ?? '') - NOON)

describe.each(engines)('what happened since an endpoint began on $name', (engine) => {
  test('O18, 7.1: an endpoint is sent what happened since it began, if its parcel came later', async () => {
    const { writes } = await openStore(NOON, engine)
    const old = await addEndpoint(writes, NOON - HOUR_MS, { name: 'old' })
    const young = await addEndpoint(writes, NOON, { name: 'young' })
    const all = await addEndpoint(writes, NOON, { name: 'all', backfill: true })
    // The first push was lost, and the second one made the parcel known.
    await writes.record([pushOf('1001', NOON - 60_000)])
    await writes.record([pollOf('1001', NOON - 60_000, NOON - 120_000, NOON - HOUR_MS, NOON - HOUR_MS - 1000)])
    const inOrder = [-60_000, -HOUR_MS - 1000, -HOUR_MS, -120_000]
    expect(timesIn(await all.take())).toEqual(inOrder)
    expect(timesIn(await old.take())).toEqual(inOrder.filter((atMs) => atMs >= -HOUR_MS))
    expect(timesIn(await young.take())).toEqual([-60_000])
    // A late push goes only to those that were not sent the entry.
    await writes.record([pushOf('1001', NOON - 120_000)])
    expect([await old.take(), await young.take(), await all.take()].map(timesIn)).toEqual([[], [-120_000], []])
  })

  test('7.1: what was too old when the relay learnt of it goes only to `backfill: true`', async () => {
    const { writes } = await openStore(NOON, engine)
    const since = NOON - 2 * cadence.staleAfterMs
    const [old, all] = [
      await addEndpoint(writes, since, { name: 'old' }),
      await addEndpoint(writes, since, { name: 'all', backfill: true }),
    ]
    await writes.record([pollOf('1001', NOON - cadence.staleAfterMs - 1, NOON - cadence.staleAfterMs)])
    expect(timesIn(await old.take())).toEqual([-cadence.staleAfterMs])
    expect(timesIn(await all.take())).toEqual([-cadence.staleAfterMs - 1, -cadence.staleAfterMs])
  })

  test('7.1: the entries of one poll go oldest first, whatever the order of the answer', async () => {
    const { writes } = await openStore(NOON, engine)
    const endpoint = await addEndpoint(writes, NOON - HOUR_MS)
    await writes.record([pollOf('1001', NOON - 3000, NOON - 1000, NOON - 4000, NOON - 2000)])
    expect(timesIn(await endpoint.take())).toEqual([-4000, -3000, -2000, -1000])
  })

  test('7.1: an endpoint began when its first sequence was recorded, and anew if added again', async () => {
    const { writes, path } = await openStore(NOON, engine)
    const beganAt = (id: string) => storedNumber(path, `select began_at_ms from endpoint where id = ${id}`)
    await writes.record([pushOf('1001', NOON - HOUR_MS)])
    const last = await storedNumber(path, 'select max(sequence) from feed')
    const first = await addEndpoint(writes, NOON + HOUR_MS, { name: 'first', from: last })
    expect(await beganAt(first.id)).toBe(NOON)
    await writes.changeEndpoint({ id: first.id, change: { name: 'renamed', enabled: false }, key: null, nowMs: NOON + 2 * HOUR_MS })
    expect(await beganAt(first.id)).toBe(NOON)
    await writes.removeEndpoint({ id: first.id, nowMs: NOON + 2 * HOUR_MS })
    const again = await addEndpoint(writes, NOON + 3 * HOUR_MS, { name: 'renamed' })
    expect(await beganAt(again.id)).toBe(NOON + 3 * HOUR_MS)
  })

  test('7.1: an endpoint of the config began when the store first saw its name', async () => {
    const { writes, path } = await openStore(NOON, engine)
    const begins = () => storedNumber(path, "select began_at_ms from endpoint where name = 'shop'")
    const sync = (names: readonly string[], nowMs: number) =>
      writes.syncEndpoints(
        names.map((name) => ({ ...endpointSettings, name })),
        nowMs,
        null,
        true,
      )
    await sync(['shop'], NOON)
    await sync([], NOON + HOUR_MS)
    await sync(['shop'], NOON + 2 * HOUR_MS)
    expect(await begins()).toBe(NOON)
  })

  test('6.1: when the clock is put back, an endpoint began no later than now', async () => {
    const { writes, path } = await openStore(NOON, engine)
    const { id } = await addEndpoint(writes, NOON + HOUR_MS)
    await writes.shiftSchedule({ byMs: HOUR_MS, sinceMs: NOON, nowMs: NOON, afterParcelId: 0, limit: 10 })
    expect(await storedNumber(path, `select began_at_ms from endpoint where id = ${id}`)).toBe(NOON)
    await writes.record([pollOf('1001', NOON)])
    expect(timesIn(await endpointOf(writes, id, NOON).take())).toEqual([0])
  })

  test('7.1: an endpoint of an earlier version began when its first event was recorded', async () => {
    const place = await newPlace(engine)
    const before = await openStore(NOON, engine, place)
    const ids = [(await addEndpoint(before.writes, NOON - HOUR_MS, { name: 'old' })).id]
    await before.writes.record([pushOf('1001', NOON - HOUR_MS)])
    ids.push((await addEndpoint(before.writes, NOON, { name: 'newest' })).id)
    await before.writes.close()
    const migratedAtMs = Date.now()
    await upgradeToBegan(place)
    const begins = await Promise.all(ids.map((id) => storedNumber(place, `select began_at_ms from endpoint where id = ${id}`)))
    expect(begins[0]).toBe(NOON)
    expect(begins[1]).toBeGreaterThanOrEqual(migratedAtMs)
  })

  test('7.1: where first events are pruned, an endpoint began with the oldest event kept', async () => {
    const place = await newPlace(engine)
    const { writes, pass, push } = await openStore(NOON, engine, place)
    const begins = (id: string) => storedNumber(place, `select began_at_ms from endpoint where id = ${id}`)
    const upgraded = await addEndpoint(writes, NOON, { name: 'upgraded' })
    for (const trackingId of ['1001', '1002', '1003']) {
      await push({ trackingIds: [trackingId], eventTime: timeOf(NOON) })
      pass(HOUR_MS)
    }
    await writes.close()
    const [second, third] = (await storedRows<{ sequence: number }>(place, 'select sequence from feed order by sequence')).slice(1)
    await pruneStoredFeed(place, Number(second?.sequence) - 1)
    await upgradeToBegan(place)
    expect(await begins(upgraded.id)).toBe(NOON + HOUR_MS)
    const after = await openStore(NOON + 3 * HOUR_MS, engine, place)
    const from = async (sequence: number) =>
      await begins((await addEndpoint(after.writes, after.now(), { name: `from ${sequence}`, from: sequence })).id)
    expect([await from(Number(second?.sequence)), await from(Number(third?.sequence))]).toEqual([NOON + HOUR_MS, NOON + 2 * HOUR_MS])
    // Of the first poll after the upgrade, it is sent only what happened since the oldest event kept.
    const statuses = [HOUR_MS - 1, HOUR_MS].map((ms) => ({ eventTimestamp: timeOf(NOON + ms), status: 'TerminalArrived' }))
    await after.poll({ asked: '1004', trackingIds: ['1004'], language: 'en', statuses })
    expect(timesIn(await endpointOf(after.writes, upgraded.id, after.now()).take()).filter((ms) => ms > 0)).toEqual([HOUR_MS])
  })

  test('a replay of missing events that an earlier version began is cancelled with a note', async () => {
    const place = await newPlace(engine)
    const { writes } = await openStore(NOON, engine, place)
    const { id } = await addEndpoint(writes, NOON)
    const selection = {
      endpointId: id,
      states: ['dead'] as const,
      fromSequence: 0,
      fromMs: 0,
      deliveryId: null,
      sequence: null,
      parcelId: null,
    }
    const job = await writes.startJob({ task: { kind: 'replay', to: id, selection, untilMs: NOON }, by: 'ops', nowMs: NOON })
    await writes.close()
    await changeStoredRows(place, 'update job set task = ?', JSON.stringify({ kind: 'replay', to: id, missing: { fromSequence: 0 } }))
    await upgradeToBegan(place)
    const jobs = await storedRows<{ state: string; failure: string }>(place, 'select state, failure from job')
    expect(jobs).toEqual([{ state: 'cancelled', failure: expect.stringContaining('everything that happened since it began') }])
    const { reads, writes: after } = await openStore(NOON, engine, place)
    expect((await reads.listJobs({ before: null, limit: 5 })).map(({ jobId, task, state }) => [jobId, task.kind, state])).toEqual([
      [job?.jobId, 'replay', 'cancelled'],
    ])
    expect((await after.workOnJobs({ limit: 5, nowMs: NOON })).hasWorked).toBe(false)
  })
})
