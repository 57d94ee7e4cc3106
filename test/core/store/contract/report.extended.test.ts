import { describe, expect, test } from 'vitest'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { COUNTS } from '../../../../src/insight/report/report.rules.ts'
import { createReports } from '../../../../src/insight/report/report.ts'
import { recordOptions } from '../../../support/history/policy.ts'
import { DAY_MS, HOUR_MS } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { openErasures } from '../../../support/store/erasures.ts'
import { incomingPush } from '../../../support/store/write-side.ts'

const OCTOBER = Date.UTC(2026, 9, 10, 12)
const GRACE_MS = recordOptions.missedPushGraceMs
const iso = (atMs: number) => new Date(atMs).toISOString()
const seconds = (atMs: number) => `${iso(atMs).slice(0, 19)}Z`

/** Opens a store with the report of its carrier. */
async function openReport(
  engine: Engine,
  { startMs = OCTOBER, zone = 'UTC', reportsMs = 1830 * DAY_MS, place = null as string | null } = {},
) {
  const store = await openErasures(engine, place)
  store.setClock(startMs)
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const settings = () => ({ zone, retention: { reportsMs }, poll: { missedPushGraceMs: 0 } })
  const reports = createReports({ ...store, write: store.writes, clock: { now: store.now, monotonic: () => 0 }, log, settings })
  /** Records a push of an event that happened so long ago. */
  const event = (agoMs: number, status: string, fields = {}) =>
    store.push({ status, detailedStatus: status, eventTime: iso(store.now() - agoMs), ...fields })
  const polled = (entries: readonly (readonly [atMs: number, status: string])[]) =>
    store.poll({ statuses: entries.map(([atMs, status]) => ({ status, detailedStatus: status, eventTimestamp: seconds(atMs) })) })
  /** Lets the grace of what polls found go by. */
  const settle = async () => {
    store.pass(GRACE_MS + 1)
    return (await store.writes.settleMissedPushes(store.now())).length
  }
  return { ...store, reports, event, polled, settle, counts: async (month: string | null = null) => (await reports.read(month)).counts }
}

describe.each(engines)('the report on $name', (engine) => {
  test('10.1: the first push of an entry counts, with the time since the event, and late if that is long', async () => {
    const { event, reports, counts, inboxIds } = await openReport(engine)
    await event(2000, 'A')
    await event(GRACE_MS + 60_000, 'B', { trackingIds: ['1002'] })
    expect(await counts()).toMatchObject({ pushed: 2, late: 1, lost: 0, repeated: 0, outOfOrder: 0 })
    const { lateness, evidence } = await reports.read('2026-10')
    expect(lateness?.p50Ms).toBeGreaterThan(1900)
    expect(lateness?.p50Ms).toBeLessThan(2100)
    expect(evidence.find(({ name }) => name === 'late')?.ids).toEqual([String((await inboxIds())[1])])
  })

  test('10.2: an entry of a known parcel that only a poll found is lost, and late once its push comes', async () => {
    const { event, polled, settle, counts, reports, now, pass } = await openReport(engine)
    await event(1000, 'A')
    const [first, second] = [now() + 60_000, now() + 120_000]
    pass(HOUR_MS)
    await polled([
      [second, 'C'],
      [first, 'B'],
      [now() - 40 * DAY_MS, 'Before'],
    ])
    expect(await settle()).toBe(2)
    expect(await counts()).toMatchObject({ pushed: 1, lost: 2, late: 0 })
    expect((await reports.read(null)).evidence.find(({ name }) => name === 'lost')).toMatchObject({ ids: ['AB123456789SE'], removed: 0 })
    await event(now() - first, 'B')
    expect(await counts()).toMatchObject({ pushed: 2, lost: 1, late: 1 })
    await event(now() - first, 'B')
    expect(await counts()).toMatchObject({ pushed: 2, lost: 1, late: 1, repeated: 1 })
  })

  test('10.2: a push within the grace of the poll that was first is not lost', async () => {
    const { event, polled, settle, counts, now, pass } = await openReport(engine)
    await event(1000, 'A')
    pass(10_000)
    await polled([[now() - 5000, 'B']])
    pass(1000)
    await event(6000, 'B')
    expect(await settle()).toBe(0)
    expect(await counts()).toMatchObject({ pushed: 2, lost: 0, late: 0 })
  })

  test('10.4: equal pushes are repeated, other words for an entry reworded, an older entry out of order', async () => {
    const { event, record, counts, now, inboxIds, reports } = await openReport(engine)
    await event(1000, 'B')
    await event(1000, 'B')
    await event(1000, 'B', { texts: { en: 'Other words' } })
    await event(5000, 'A')
    await record(incomingPush(Buffer.from('{'), now()))
    await record(incomingPush(Buffer.from('{'), now()))
    expect(await counts()).toMatchObject({ pushed: 2, repeated: 2, reworded: 1, outOfOrder: 1, quarantined: 1 })
    const [first, words, older, broken] = (await inboxIds()).map(String)
    const { evidence } = await reports.read(null)
    const idsOf = (wanted: string) => evidence.find(({ name }) => name === wanted)?.ids
    expect([idsOf('repeated'), idsOf('reworded'), idsOf('outOfOrder'), idsOf('quarantined')]).toEqual([
      [first, broken],
      [words],
      [older],
      [broken],
    ])
  })

  test('10.7: a history counts once if a poll leaves out what a push brought, or says something else', async () => {
    const { event, polled, poll, counts, now, pass } = await openReport(engine)
    await event(1000, 'A', { texts: { en: 'Arrived' }, location: 'Stockholm' })
    const atMs = now() - 1000
    pass(GRACE_MS / 2)
    await polled([])
    expect(await counts()).toMatchObject({ disagreed: 0 })
    pass(GRACE_MS)
    await polled([[atMs, 'A']])
    expect(await counts()).toMatchObject({ disagreed: 0 })
    pass(1000)
    await poll({ statuses: [{ status: 'A', detailedStatus: 'A', eventTimestamp: seconds(atMs), detailedStatusDescription: 'Elsewhere' }] })
    pass(1000)
    await polled([])
    expect(await counts()).toMatchObject({ disagreed: 1 })
    await event(1000, 'B', { trackingIds: ['1002'] })
    pass(GRACE_MS + 2000)
    for (let again = 0; again < 2; again++) await poll({ asked: 'OTHER123', trackingIds: ['1002'], statuses: [], askedAtMs: pass(1000) })
    expect(await counts()).toMatchObject({ disagreed: 2 })
  })

  test('10.9: days add up to the month, also those that lie ahead once the clock or the zone has been put back', async () => {
    const { event, reports, setClock } = await openReport(engine, { zone: 'Pacific/Kiritimati' })
    await event(1000, 'A')
    setClock(OCTOBER - DAY_MS)
    await event(1000, 'B')
    const { days, counts } = await reports.read(null)
    expect(days.filter((one) => one.counts.pushed > 0).map(({ day }) => day)).toEqual(['2026-10-10', '2026-10-11'])
    for (const name of COUNTS) expect([name, days.reduce((sum, one) => sum + one.counts[name], 0)]).toEqual([name, counts[name]])
  })

  test('10.9: what changes after a month has closed is a correction, and its figures stay', async () => {
    const { event, polled, settle, counts, reports, now, pass } = await openReport(engine, { zone: 'Europe/Stockholm' })
    await event(1000, 'A')
    const lostAtMs = now() + 60_000
    pass(HOUR_MS)
    await polled([[lostAtMs, 'B']])
    await settle()
    pass(Date.UTC(2026, 10, 14, 22, 59) - now())
    await event(now() - lostAtMs - 1000, 'C')
    expect(await reports.read('2026-10')).toMatchObject({ state: 'open', counts: { pushed: 2, lost: 1, late: 1 }, corrections: [] })
    pass(2 * 60_000)
    await event(now() - lostAtMs, 'B')
    const closed = await reports.read('2026-10')
    expect(closed).toMatchObject({ state: 'closed', closesOn: '2026-11-15', counts: { pushed: 2, lost: 1, late: 1 } })
    expect(closed.corrections).toEqual([{ foundOn: '2026-11-15', changes: { pushed: 1, lost: -1, late: 1 } }])
    expect(await counts('2026-11')).toMatchObject({ pushed: 0, lost: 0, late: 0 })
  })

  test('an outage of the carrier has its beginning and its end, in each month that it touches', async () => {
    const { writes, reports, now, pass } = await openReport(engine, { startMs: Date.UTC(2026, 9, 31, 22) })
    await reports.fold()
    const fromMs = now()
    const told = { reason: 'network', status: null, since: iso(fromMs) }
    await writes.beginTrouble({ subject: 'carrier', event: { event: 'carrier_failing', ...told }, nowMs: now() })
    expect((await reports.read(null)).outages).toEqual([{ from: iso(fromMs), until: null }])
    const untilMs = pass(5 * HOUR_MS)
    await writes.endTrouble({ subject: 'carrier', event: { event: 'carrier_recovered' }, nowMs: untilMs })
    pass(40 * DAY_MS)
    const outage = [{ from: iso(fromMs), until: iso(untilMs) }]
    expect([(await reports.read('2026-10')).outages, (await reports.read('2026-11')).outages]).toEqual([outage, outage])
    expect((await reports.read(null)).outages).toEqual([])
  })

  test('a month that has not begun, or was over before the first day, is refused', async () => {
    const { reports, event } = await openReport(engine, { zone: 'Europe/Stockholm' })
    await event(1000, 'A')
    await expect(reports.read('2026-11')).rejects.toThrow('month 2026-11 has not begun: it is 2026-10-10 in Europe/Stockholm.')
    await expect(reports.read('2026-09')).rejects.toThrow('month 2026-09 was over before this relay began to count, on 2026-10-10.')
    for (const odd of ['2026-13', '2026', 'x', '2026-1', ''])
      await expect(reports.read(odd)).rejects.toThrow('month must be a month such as')
    expect(await reports.read('2026-10')).toMatchObject({ month: '2026-10', state: 'running', countedFrom: '2026-10-10' })
  })

  test('an erasure leaves the counts, and says that evidence was removed', async () => {
    const { event, polled, settle, forget, reports, now, pass } = await openReport(engine)
    await event(1000, 'A')
    await event(1000, 'A')
    pass(HOUR_MS)
    await polled([[now() - 1000, 'B']])
    await settle()
    await reports.fold()
    await forget('1001')
    const { counts, evidence } = await reports.read(null)
    expect(counts).toMatchObject({ lost: 1, repeated: 1 })
    const of = (wanted: string) => evidence.find(({ name }) => name === wanted)
    expect([of('lost'), of('repeated')]).toMatchObject([
      { ids: [], removed: 1 },
      { ids: [], removed: 1 },
    ])
  })

  test('what is noted is counted after a restart, and once by relays that add it up together', async () => {
    const first = await openReport(engine)
    for (let at = 0; at < 5; at++) await first.event(1000, `S${at}`, { trackingIds: [`${2000 + at}`] })
    if (engine.name === 'sqlite') await first.writes.close()
    const second = await openReport(engine, { place: first.path })
    await Promise.all([second.reports.fold(), ...(engine.name === 'sqlite' ? [] : [first.reports.fold()])])
    expect(await second.counts()).toMatchObject({ pushed: 5 })
  })

  test('only the first pushes of a day are kept as evidence', async () => {
    const { event, reports } = await openReport(engine)
    for (let at = 0; at < 24; at++) await event(GRACE_MS + 1000 + at, 'A', { trackingIds: [`${3000 + at}`] })
    const late = (await reports.read(null)).evidence.find(({ name }) => name === 'late')
    expect([late?.ids.length, late?.more, late?.removed, late?.unkept]).toEqual([20, 0, 0, 4])
  })
})
