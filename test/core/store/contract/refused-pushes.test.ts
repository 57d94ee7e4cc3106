import { describe, expect, test } from 'vitest'
import { listRefused } from '../../../../src/console/refused/refused-pushes.rows.ts'
import { createRefusedPushes } from '../../../../src/console/refused/refused-pushes.ts'
import { DAY_MS, HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

describe.each(engines)('refused pushes on $name', (engine) => {
  test('each process knows the refused pushes that another has saved, even after a restart', async () => {
    const { writes, reads, now, pass } = await openStore(NOON, engine)
    const open = (process: string) => createRefusedPushes({ write: writes, reads, process, clock: { now } })
    const [one, two] = [open('one'), open('two')]
    one.note('storage_unavailable', 300)
    two.note('storage_unavailable', 50)
    one.noteComebacks({ first: 120, again: 0 })
    two.noteComebacks({ first: 40, again: 3 })
    two.note('duplicate', 9)
    expect(await one.list()).toMatchObject([{ count: 300, untilMs: NOON, comeback: { pushes: 120, again: 0 } }])
    for (let times = 0; times < 2; times++) for (const each of [one, two]) await each.save()
    pass(1000)
    one.note('storage_unavailable', 5)
    one.noteComebacks({ first: 0, again: 120 })
    await one.save()
    const comeback = { pushes: 160, again: 123 }
    const all = [{ cause: 'not_stored', count: 355, fromMs: NOON, untilMs: NOON + 1000, comeback }]
    expect([await one.list(), await two.list(), await open('three').list()]).toEqual([all, all, all])
  })

  test('refused pushes are forgotten after a day', async () => {
    const { writes, reads, now, pass } = await openStore(NOON, engine)
    const refused = createRefusedPushes({ write: writes, reads, process: 'one', clock: { now } })
    refused.note('wrong_path', 1)
    await refused.save()
    pass(DAY_MS + HOUR_MS)
    refused.note('body_too_large', 1)
    await refused.save()
    expect(await listRefused(reads.session)).toEqual([{ process: 'one', cause: 'size', count: 1, fromMs: now(), untilMs: now() }])
  })

  test('the end of a full disk names each time in which the relay did not run meanwhile, once', async () => {
    const { writes, reads, now } = await openStore(NOON, engine)
    const of = { subject: 'disk full', nowMs: NOON }
    const [lastSeenAt, startedAt] = [new Date(NOON + 10_000).toISOString(), new Date(NOON + 20_000).toISOString()]
    const end = async () => {
      await writes.beginTrouble({ ...of, event: { event: 'disk_full', freeBytes: 5, freeBytesMin: 10 } })
      await writes.endTrouble({ ...of, event: { event: 'disk_usable', freeBytes: 90, until: new Date(now()).toISOString() } })
      const [told] = await reads.listOperatorEvents({ event: 'disk_usable', fromMs: null, toMs: null, before: null, limit: 1 })
      return told?.detail.down
    }
    await writes.noteDown({ lastSeenMs: NOON - 9000, startedMs: NOON - 5000 })
    for (let again = 0; again < 2; again++) await writes.noteDown({ lastSeenMs: NOON + 10_000, startedMs: NOON + 20_000 })
    expect(await end()).toEqual([{ lastSeenAt, startedAt }])
    expect(await end()).toEqual([])
  })

  test('the end of a full disk counts what was refused since its beginning, over restarts', async () => {
    const { writes, reads, now, pass } = await openStore(NOON, engine)
    const open = (process: string) => createRefusedPushes({ write: writes, reads, process, clock: { now } })
    const of = { subject: 'disk full', freeBytes: 5, freeBytesMin: 10 }
    const begin = (nowMs: number) => writes.beginTrouble({ ...of, event: { event: 'disk_full', freeBytes: 5, freeBytesMin: 10 }, nowMs })
    const end = async () => {
      const event = { event: 'disk_usable', freeBytes: 90, until: new Date(now()).toISOString() } as const
      await writes.endTrouble({ ...of, event, nowMs: now() })
      const [told] = await reads.listOperatorEvents({ event: 'disk_usable', fromMs: null, toMs: null, before: null, limit: 1 })
      return told?.detail
    }
    const one = open('one')
    one.note('storage_unavailable', 90)
    one.noteComebacks({ first: 90, again: 60 })
    await one.save()
    for (const { of: refused, afterMs } of [
      { of: 3, afterMs: NOON },
      { of: 5, afterMs: NOON + 60_000 },
    ]) {
      pass(60_000)
      // The relay notices 1.5 s after the first refusal that the disk is full.
      const fromMs = now()
      one.note('storage_unavailable', 1)
      await one.save()
      pass(1500)
      one.note('wrong_path', 7)
      expect(one.troubleBegins(afterMs)).toBe(fromMs)
      await begin(fromMs)
      one.note('storage_unavailable', refused - 2)
      await one.save()
      const next = refused === 3 ? one : open('two')
      next.note('storage_unavailable', 1)
      await next.save()
      expect(await end()).toMatchObject({ since: new Date(fromMs).toISOString(), refused })
    }
    const all = [
      { cause: 'not_stored', count: 98, fromMs: NOON, comeback: { pushes: 90, again: 60 } },
      { cause: 'path', count: 14 },
    ]
    expect([await one.list(), await open('three').list()]).toMatchObject([all, all])
  })

  test('what an earlier full disk refused, or is told a moment late, begins no new trouble', async () => {
    const { writes, reads, now, pass } = await openStore(NOON, engine)
    const refused = createRefusedPushes({ write: writes, reads, process: 'one', clock: { now } })
    refused.note('storage_unavailable', 4)
    pass(1000)
    expect(refused.troubleBegins(now())).toBe(NOON + 1000)
    refused.note('storage_unavailable', 1, NOON + 998)
    refused.note('storage_unavailable', 1)
    await refused.save()
    expect(await listRefused(reads.session)).toMatchObject([
      { count: 4, fromMs: NOON, untilMs: NOON },
      { count: 2, fromMs: NOON + 1000 },
    ])
  })

  test('refused pushes that could not be saved are saved by the next call', async () => {
    const { writes, reads, now } = await openStore(NOON, engine)
    let isDown = true
    const saveRefused: typeof writes.saveRefused = async (request) => {
      if (isDown) throw new Error('the disk is full')
      await writes.saveRefused(request)
    }
    const refused = createRefusedPushes({ write: { saveRefused }, reads, process: 'one', clock: { now } })
    refused.note('storage_unavailable', 4)
    expect(refused.unsaved()).toBe(null)
    await expect(refused.save()).rejects.toThrow('the disk is full')
    refused.note('storage_unavailable', 1)
    expect(refused.unsaved()).toMatchObject({ spells: [{ process: 'one', count: 5 }] })
    isDown = false
    await refused.save()
    expect(refused.unsaved()).toBe(null)
    expect(await createRefusedPushes({ write: writes, reads, process: 'two', clock: { now } }).list()).toMatchObject([{ count: 5 }])
  })
})
