import { describe, expect, test } from 'vitest'
import { countStalled } from '../../../src/insight/watchdogs/watchdogs.rows.ts'
import { aRule } from '../../support/insight/a-rule.ts'
import { openWatched } from '../../support/insight/open-watched.ts'
import { DAY_MS, HOUR_MS, NOON } from '../../support/runner/constants.ts'
import { drawWith, seeded } from '../../support/runner/seeded.ts'
import { engines } from '../../support/store/engines.ts'
import { DIRECTIONS, moveStore, placeOf } from '../../support/store/moving.ts'
import { changeStoredRows, storedNumber } from '../../support/store/stored-rows.ts'

describe.each(engines)('parcels that are watched over, on $name', (engine) => {
  test('9.3: a breach is told once, and over when an entry comes, a back-dated one included', async () => {
    const { scan, look, pass, told, breaches, path, reads } = await openWatched(engine)
    await scan('Ingested', NOON)
    expect(await look()).toBe(0)
    expect(await countStalled(reads.session)).toEqual({ parcels: 0, isAll: true })
    pass(48 * HOUR_MS - 1)
    expect(await look()).toBe(0)
    pass(1)
    expect(await look()).toBe(1)
    expect(await told()).toEqual(['stalled no-scan'])
    expect(await countStalled(reads.session)).toEqual({ parcels: 1, isAll: true })
    pass(HOUR_MS)
    expect(await look()).toBe(0)
    await scan('TerminalArrived', NOON + 40 * HOUR_MS)
    expect(await look()).toBe(1)
    expect(await told()).toEqual(['stalled no-scan', 'recovered no-scan'])
    expect(await breaches()).toEqual([['no-scan', NOON + 48 * HOUR_MS, true]])
    expect(await storedNumber(path, 'select count(*) from watchdog_due')).toBe(0)
    expect(await countStalled(reads.session)).toEqual({ parcels: 0, isAll: true })
  })

  test('9.3: before it is told the carrier is asked; an answer since it is due is enough', async () => {
    const { scan, look, pass, told, writes, poll, now, path } = await openWatched(engine)
    await scan('Ingested', NOON, { trackingIds: ['AB123456789SE'] })
    pass(48 * HOUR_MS)
    await look(false)
    expect(await told()).toEqual([])
    const claim = (except: readonly number[] = []) => writes.claimSuspects({ nowMs: now(), limit: 5, leaseMs: 1000, except })
    const { suspects } = await claim()
    expect(suspects).toMatchObject([{ identifiers: ['AB123456789SE'] }])
    const [parcelId = 0] = suspects.map((one) => one.parcelId)
    expect((await claim([parcelId])).suspects).toEqual([])
    await poll({
      asked: 'AB123456789SE',
      statuses: [{ status: 'Ingested', detailedStatus: 'Ingested', eventTimestamp: '2026-03-01T12:00:00Z' }],
    })
    await writes.settleSuspect({ parcelId, nowMs: now(), isUnknown: false, isAnswering: true })
    expect(await told()).toEqual(['stalled no-scan'])
    expect(await storedNumber(path, 'select is_checked from watchdog_breach')).toBe(1)
    expect((await claim()).suspects).toEqual([])
  })

  test('9.3: a poll that finds an entry tells nothing; one that fails waits; the carrier knows none: told unchecked', async () => {
    const { scan, look, pass, told, writes, poll, now, path } = await openWatched(engine)
    await scan('Ingested', NOON, { trackingIds: ['AB123456789SE'] })
    await scan('Ingested', NOON, { trackingIds: ['OTHER1'] })
    pass(48 * HOUR_MS)
    await look(false)
    const { suspects } = await writes.claimSuspects({ nowMs: now(), limit: 5, leaseMs: 1000, except: [] })
    const idOf = (name: string) => suspects.find(({ identifiers }) => identifiers.includes(name))?.parcelId ?? 0
    await poll({ asked: 'AB123456789SE', statuses: [{ status: 'Delivered', eventTimestamp: '2026-03-02T12:00:00Z' }] })
    await look(false)
    await writes.notePollFailure({ parcelId: idOf('OTHER1'), kind: 'unavailable', atMs: now() })
    await writes.settleSuspect({ parcelId: idOf('OTHER1'), nowMs: now(), isUnknown: false, isAnswering: true })
    expect(await told()).toEqual([])
    await writes.settleSuspect({ parcelId: idOf('OTHER1'), nowMs: now(), isUnknown: true, isAnswering: true })
    expect(await told()).toEqual(['stalled no-scan'])
    expect(await storedNumber(path, 'select is_checked from watchdog_breach')).toBe(0)
  })

  test('9.4: a new rule counts from its first load, `past` counts all; a removed one ends what it told', async () => {
    const { scan, look, pass, told, take, path } = await openWatched(engine, [])
    await scan('Ingested', NOON)
    pass(50 * HOUR_MS)
    await take([aRule({ past: false })])
    await look()
    expect(await told()).toEqual([])
    await take([aRule({ past: false }), aRule({ name: 'all', past: true })])
    await look()
    expect(await told()).toEqual(['stalled all'])
    await take([])
    await look()
    expect(await told()).toEqual(['stalled all', 'recovered all'])
    expect(await storedNumber(path, 'select count(*) from watchdog_due')).toBe(0)
  })

  test('9.4: what another replica has noted by other rules is judged when all have the same again, and once', async () => {
    const { scan, pass, told, writes, now, path } = await openWatched(engine)
    const look = (isMixed: boolean) => writes.lookAtWatched({ nowMs: now(), limit: 10, mayTellUnchecked: true, isMixed })
    await look(true)
    await scan('Ingested', NOON)
    // A replica without the rule would have noted nothing.
    await changeStoredRows(path, 'delete from watchdog_due')
    pass(48 * HOUR_MS)
    expect((await look(true)).looked).toBe(0)
    // The replica that holds the role dies, and another goes on.
    expect((await look(false)).looked).toBe(1)
    expect(await told()).toEqual(['stalled no-scan'])
    expect((await look(false)).looked).toBe(0)
  })

  test('9.4: a changed rule judges all parcels anew, in batches, while pushes come', async () => {
    const { scan, look, pass, told, take, writes, now } = await openWatched(engine)
    for (let nth = 10; nth < 35; nth++) await scan('Ingested', NOON, { trackingIds: [`PARCEL${nth}`] })
    pass(72 * HOUR_MS)
    await take([aRule({ notWithinMs: 60 * HOUR_MS })])
    for (let nth = 10; nth < 35; nth++) {
      await writes.lookAtWatched({ nowMs: now(), limit: 3, mayTellUnchecked: true })
      if (nth % 5 === 0) await scan('TerminalArrived', NOON + HOUR_MS, { trackingIds: [`PARCEL${nth}`] })
    }
    await look()
    const news = await told()
    expect(news.filter((one) => one.startsWith('stalled')).length - news.filter((one) => one.startsWith('recovered')).length).toBe(20)
  })

  test('without a rule nothing is noted', async () => {
    const { scan, path } = await openWatched(engine, [])
    await scan('Ingested', NOON)
    expect(await storedNumber(path, 'select count(*) from watchdog_due')).toBe(0)
  })

  test('a label that is said later counts', async () => {
    const { scan, look, pass, told, writes, now } = await openWatched(engine, [
      aRule({ when: { status: ['Ingested'], label: ['priority=high'] } }),
    ])
    await scan('Ingested', NOON)
    pass(50 * HOUR_MS)
    await look()
    expect(await told()).toEqual([])
    const context = { reference: null, labels: { priority: 'high' }, note: null }
    await writes.saveOrder({ identifier: '1001', context, nowMs: now() })
    await look()
    expect(await told()).toEqual(['stalled no-scan'])
  })

  test('9.6: a join moves breaches, each once; what the joined history no longer shows is over', async () => {
    const { scan, look, pass, told, breaches } = await openWatched(engine)
    await scan('Ingested', NOON, { trackingIds: ['1001'] })
    await scan('Ingested', NOON, { trackingIds: ['1002'] })
    pass(HOUR_MS)
    await scan('Ingested', NOON + HOUR_MS, { trackingIds: ['1003'] })
    pass(60 * HOUR_MS)
    await look()
    expect(await told()).toHaveLength(3)
    await scan('Created', NOON - HOUR_MS, { trackingIds: ['1001', '1002'] })
    await look()
    // The feed no longer shows what a breach was that was told of both parcels.
    expect(await told()).toEqual(['stalled no-scan', 'stalled no-scan'])
    expect(await breaches()).toEqual([['no-scan', NOON + 48 * HOUR_MS, false]])
    await scan('Created', NOON - 2 * HOUR_MS, { trackingIds: ['1001', '1003'] })
    await look()
    expect((await told()).at(-1)).toBe('recovered no-scan')
    expect((await breaches())?.toSorted()).toEqual([
      ['no-scan', NOON + 48 * HOUR_MS, true],
      ['no-scan', NOON + 49 * HOUR_MS, false],
    ])
  })

  test('9.6: an erasure takes all of it', async () => {
    const { scan, look, pass, forget, path } = await openWatched(engine)
    await scan('Ingested', NOON, { trackingIds: ['GONE0001'] })
    pass(50 * HOUR_MS)
    await look()
    await forget('GONE0001')
    for (const table of ['watchdog_due', 'watchdog_breach']) expect(await storedNumber(path, `select count(*) from ${table}`)).toBe(0)
  })

  test('9.2: the same observations in any order end with the same breaches', async () => {
    const rules = [
      aRule(),
      aRule({ name: 'late', when: { status: ['DeliveryStarted'] }, notWithinMs: null, notBy: '22:00', until: ['DeliverySucceeded'] }),
    ]
    for (let seed = 1; seed <= 4; seed++) {
      const { below, pick } = drawWith(seeded(seed))
      const scans = Array.from(
        { length: 8 },
        () => [pick(['Ingested', 'DeliveryStarted', 'DeliverySucceeded', 'Other']), NOON + below(48) * HOUR_MS] as const,
      )
      const ends = []
      for (let round = 0; round < 3; round++) {
        const { scan, look, pass, breaches } = await openWatched(engine, rules)
        const order = scans.map((one) => [below(1000), one] as const).sort(([a], [b]) => a - b)
        pass(2 * DAY_MS)
        for (const [, [status, atMs]] of order) {
          await scan(status, atMs)
          if (below(3) === 0) await look()
        }
        pass(5 * DAY_MS)
        await look()
        ends.push((await breaches())?.filter(([, , isEnded]) => isEnded === false).toSorted())
      }
      expect([seed, ends[1], ends[2]]).toEqual([seed, ends[0], ends[0]])
    }
  })

  test('9.2: a clock that was ahead and is put back tells nothing twice and loses nothing', async () => {
    const { scan, look, pass, setClock, told, take } = await openWatched(engine)
    await scan('Ingested', NOON)
    setClock(NOON + 49 * HOUR_MS)
    await look()
    setClock(NOON + HOUR_MS)
    await look()
    expect(await told()).toEqual(['stalled no-scan'])
    await scan('TerminalArrived', NOON + HOUR_MS)
    await look()
    expect(await told()).toEqual(['stalled no-scan', 'recovered no-scan'])
    // A rule that was loaded by the wrong clock counts from the right time on.
    setClock(NOON + 100 * DAY_MS)
    await take([aRule({ name: 'fresh', past: false })])
    await look()
    setClock(NOON + 2 * HOUR_MS)
    await look()
    await scan('Ingested', NOON + 2 * HOUR_MS)
    pass(50 * HOUR_MS)
    await look()
    expect((await told()).at(-1)).toBe('stalled fresh')
  })

  test('at most a hundred breaches of a parcel are kept', async () => {
    const { scan, look, pass, path, now } = await openWatched(engine, [aRule({ notWithinMs: HOUR_MS })])
    for (let nth = 0; nth < 104; nth++) {
      await scan('Ingested', now())
      pass(2 * HOUR_MS)
      await look()
    }
    expect(await storedNumber(path, 'select count(*) from watchdog_breach')).toBe(100)
  })
})

test.each(DIRECTIONS)('9.6: a move from $name carries it', async ({ from, to }) => {
  const [old, next] = [await placeOf(from), await placeOf(to)]
  const before = await openWatched(from, [aRule()], old.place)
  await before.scan('Ingested', NOON)
  before.pass(50 * HOUR_MS)
  await before.look()
  await before.writes.close()
  await moveStore(old, next)
  const after = await openWatched(to, [aRule()], next.place)
  after.setClock(NOON + 51 * HOUR_MS)
  await after.scan('TerminalArrived', NOON + 51 * HOUR_MS)
  await after.look()
  await after.scan('Ingested', NOON + 52 * HOUR_MS, { trackingIds: ['OTHER1'] })
  after.setClock(NOON + 101 * HOUR_MS)
  await after.look()
  expect(await after.told()).toEqual(['stalled no-scan', 'recovered no-scan', 'stalled no-scan'])
})
