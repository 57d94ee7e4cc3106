import { describe, expect, test } from 'vitest'
import { createHold } from '../../../src/insight/watchdogs/hold-verdicts.ts'
import { createManageWatchdogs } from '../../../src/insight/watchdogs/manage-watchdogs.ts'
import { heldSinceMs } from '../../../src/insight/watchdogs/watchdogs.rows.ts'
import { aRule } from '../../support/insight/a-rule.ts'
import { openWatched } from '../../support/insight/open-watched.ts'
import { DAY_MS, HOUR_MS, NOON } from '../../support/runner/constants.ts'
import { engines } from '../../support/store/engines.ts'
import { rebuildStore } from '../../support/store/rebuilt-store.ts'
import { changeStoredRows, storedNumber } from '../../support/store/stored-rows.ts'

describe.each(engines)('watchdogs under attack, on $name', (engine) => {
  test('9.3: a parcel that waits for its question by a clock that was ahead is asked about when the clock is put back', async () => {
    const { scan, look, setClock, writes, now } = await openWatched(engine)
    await scan('Ingested', NOON)
    setClock(NOON + 100 * DAY_MS)
    await look(false)
    const claim = async () => (await writes.claimSuspects({ nowMs: now(), limit: 5, leaseMs: 1000, except: [] })).suspects.length
    setClock(NOON + HOUR_MS)
    await look(false)
    expect(await claim()).toBe(0)
    setClock(NOON + 48 * HOUR_MS)
    await look(false)
    expect(await claim()).toBe(1)
  })

  test('9.6: a breach that a join moves while no rule is left is over too', async () => {
    const { scan, look, pass, take, told, breaches } = await openWatched(engine)
    await scan('Created', NOON, { trackingIds: ['OLDER1'] })
    await scan('Ingested', NOON, { trackingIds: ['1001'] })
    pass(50 * HOUR_MS)
    await look()
    await take([])
    await scan('Created', NOON, { trackingIds: ['OLDER1', '1001'] })
    await look()
    expect(await told()).toEqual(['stalled no-scan', 'recovered no-scan'])
    expect(await breaches()).toEqual([['no-scan', NOON + 48 * HOUR_MS, true]])
  })

  test('9.2: what an answer says of the whole parcel counts, whatever entries it lists', async () => {
    const { scan, poll, look, pass, told } = await openWatched(engine, [
      aRule({ when: { status: ['Ingested'], distributionType: ['Mailbox'] } }),
    ])
    await scan('Ingested', NOON, { distributionType: '' })
    pass(50 * HOUR_MS)
    await look()
    expect(await told()).toEqual([])
    const statuses = [{ status: 'Created', detailedStatus: 'Created', eventTimestamp: '2026-03-01T10:00:00Z' }]
    await poll({ statuses, distributionType: 'Mailbox' })
    await look()
    expect(await told()).toEqual(['stalled no-scan'])
    pass(HOUR_MS)
    await poll({ statuses, distributionType: 'Home' })
    await look()
    expect(await told()).toEqual(['stalled no-scan', 'recovered no-scan'])
  })

  test('9.2: a history that a rebuild has corrected is judged anew', async () => {
    const store = await openWatched(engine)
    const { scan, look, pass, told, path } = store
    await scan('Ingested', NOON)
    await scan('Created', NOON - HOUR_MS)
    await changeStoredRows(path, 'update sighting set at_ms = ? where at_ms = ?', NOON + HOUR_MS, NOON - HOUR_MS)
    pass(50 * HOUR_MS)
    await look()
    expect(await told()).toEqual([])
    await rebuildStore(store)
    await look()
    expect(await told()).toEqual(['stalled no-scan'])
  })

  test('9.4: a look at long histories holds up pushes no longer than one at short ones, and comes to its end', async () => {
    const { poll, look, pass, take, writes, now, path, reads } = await openWatched(engine, [])
    const [parcels, entries] = [7, 1500]
    const at = (nth: number) => `${new Date(NOON - nth * 60_000).toISOString().slice(0, 19)}Z`
    const statuses = Array.from({ length: entries }, (_, nth) => ({
      status: 'Ingested',
      detailedStatus: `D${nth % 7}`,
      eventTimestamp: at(nth),
    }))
    for (let nth = 0; nth < parcels; nth++) await poll({ asked: `LONG${100 + nth}`, trackingIds: [`L${100 + nth}`], statuses })
    pass(50 * HOUR_MS)
    await take([aRule()])
    const request = { nowMs: now(), limit: 64, mayTellUnchecked: true }
    expect(await writes.lookAtWatched(request)).toEqual({ told: 2, looked: 2, isMore: true })
    await look()
    const lasting = 'select count(*) from watchdog_breach where ended_at_ms is null'
    expect(await storedNumber(path, lasting)).toBe(parcels)
    await take([])
    await look()
    expect(await storedNumber(path, lasting)).toBe(0)
    const yieldToOthers = async () => undefined
    const tried = createManageWatchdogs({ reads, clock: { now, monotonic: now }, rules: () => ({ rules: [], zone: 'UTC' }), yieldToOthers })
    const found = []
    for (let next: number | null = 0; next !== null; ) {
      const page = await tried.tryRules([{ name: 'tried', when: { status: ['Ingested'] }, notWithin: '48h' }], 30 * DAY_MS, next)
      expect(page.parcels).toBeLessThanOrEqual(2)
      found.push(...page.breaches)
      next = page.next
    }
    expect(found).toHaveLength(parcels)
  })

  test('9.5: of a relay that is deaf nothing is told, also not of a parcel about which nobody can be asked', async () => {
    const { scan, look, pass, told, writes, now, path } = await openWatched(engine)
    await scan('Ingested', NOON, { trackingIds: ['AB123456789SE'] })
    pass(48 * HOUR_MS)
    await look(false)
    await writes.noteNotPollable('AB123456789SE')
    const claim = { nowMs: now(), limit: 5, leaseMs: 1000, except: [] }
    await writes.claimSuspects({ ...claim, isDeaf: true })
    expect(await told()).toEqual([])
    expect(await storedNumber(path, 'select count(*) from watchdog_due where ask_at_ms is not null')).toBe(1)
    await writes.claimSuspects({ ...claim, isDeaf: false })
    expect(await told()).toEqual(['stalled no-scan'])
  })

  test('9.5: operators are told after an hour, whatever the clock showed when verdicts were first held back', async () => {
    const store = await openWatched(engine)
    const { hold, events } = heldBy(store)
    store.setClock(NOON + 100 * DAY_MS)
    await store.scan('Ingested', NOON)
    await store.look(false)
    await hold().note(true, store.now())
    store.setClock(NOON + 60 * HOUR_MS)
    const next = hold()
    await next.note(true, store.now())
    store.pass(HOUR_MS + 1)
    await next.note(true, store.now())
    expect(await events()).toEqual(['watchdogs_held'])
  })

  test('9.5: replicas that take the role from each other tell each hold, and its end', async () => {
    const store = await openWatched(engine)
    const { hold, events } = heldBy(store)
    await store.scan('Ingested', NOON)
    store.pass(48 * HOUR_MS)
    await store.look(false)
    const [one, other] = [hold(), hold()]
    const held = async (by: ReturnType<typeof hold>) => {
      await by.note(true, store.now())
      store.pass(HOUR_MS + 1)
      await by.note(true, store.now())
    }
    await one.note(false, store.now())
    await held(other)
    store.pass(HOUR_MS)
    await one.note(false, store.now())
    expect(await events()).toEqual(['watchdogs_held', 'watchdogs_resumed'])
    expect(await heldSinceMs(store.reads.session)).toBe(null)
    await held(other)
    expect(await events()).toEqual(['watchdogs_held', 'watchdogs_resumed', 'watchdogs_held'])
  })
})

/** What notes that verdicts of a store are held back, and what operators were told. */
function heldBy({ writes, reads, now }: Awaited<ReturnType<typeof openWatched>>) {
  let elapsedMs = 0
  const monotonic = () => {
    elapsedMs += 10_000
    return elapsedMs
  }
  return {
    hold: () => createHold({ write: writes, reads, clock: { now, monotonic }, wakeDispatcher: () => undefined }),
    events: async () =>
      (await reads.listOperatorEvents({ event: null, fromMs: null, toMs: null, before: null, limit: 10 }))
        .map(({ event }) => event)
        .toReversed(),
  }
}
