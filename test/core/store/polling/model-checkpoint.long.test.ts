import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { openWriteSide } from '../../../../src/assembly/open-write-side.ts'
import { parseScanRate } from '../../../../src/core/domain/polling/model-codec.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { aPoll, pushBody } from '../../../support/history/builders.ts'
import { deliverOptions, recordOptions } from '../../../support/history/policy.ts'
import { HOUR_MS, MINUTE_MS } from '../../../support/runner/constants.ts'
import { copyPlace, engines, newPlace } from '../../../support/store/engines.ts'
import { changeStoredRows, storedRows } from '../../../support/store/stored-rows.ts'
import { incomingPush } from '../../../support/store/write-side.ts'

const NOW = Date.UTC(2026, 2, 2, 8)
const iso = (atMs: number) => new Date(atMs).toISOString()

async function openRuns(engine: Engine) {
  let nowMs = NOW
  let path = await newPlace(engine)
  let parcels = 0
  const errors: object[] = []
  const clock = { now: () => nowMs, monotonic: () => nowMs }
  const pass = (ms: number) => {
    nowMs += ms
    return nowMs
  }
  return {
    errors,
    pass,
    now: clock.now,
    async start() {
      const writes = await openWriteSide({ sqlitePath: path, engine, record: recordOptions, deliver: deliverOptions }, clock, {
        error: (fields) => void errors.push(fields),
      })
      let isClosed = false
      const close = async () => {
        if (!isClosed) await writes.close()
        isClosed = true
      }
      onTestFinished(close)
      return { ...writes, close }
    },
    /** Copies the store as it is now. Later runs use the copy. */
    async kill() {
      path = await copyPlace(engine, path)
    },
    /** Records pushes that each bring a new entry of a new parcel. */
    async pushed({ record }: { readonly record: Awaited<ReturnType<typeof openWriteSide>>['record'] }, count = 1) {
      for (let at = 0; at < count; at++) {
        pass(MINUTE_MS)
        await record([incomingPush(pushBody({ trackingIds: [String(5000 + parcels++)], eventTime: iso(nowMs - 1000) }), nowMs)])
      }
    },
    /** Records a poll that finds a scan from a minute ago, of a parcel that a push reported. */
    async found({ record }: { readonly record: Awaited<ReturnType<typeof openWriteSide>>['record'] }, scannedAtMs = nowMs - MINUTE_MS) {
      const statuses = [{ status: 'TerminalDeparted', eventTimestamp: iso(scannedAtMs) }]
      await record([
        { kind: 'poll', observation: aPoll({ asked: '5000', trackingIds: ['5000'], statuses, askedAtMs: nowMs }), watch: false },
      ])
    },
    read: async (sql: string) => {
      const rows = z.array(z.object({ text: z.union([z.string(), z.instanceof(Uint8Array)]) })).parse(await storedRows(path, sql))
      return rows.map(({ text }) => Buffer.from(text).toString())
    },
    write: (sql: string, ...values: readonly (string | Uint8Array)[]) => changeStoredRows(path, sql, ...values),
  }
}

type Runs = Awaited<ReturnType<typeof openRuns>>
const RHYTHM = "select value as text from setting where name = 'rhythm'"
const EVENTS = 'select body as text from composed_event order by sequence'
const rhythmOf = async (runs: Runs) => parseScanRate((await runs.read(RHYTHM))[0] ?? '')
const eventsOf = async (runs: Runs) => (await runs.read(EVENTS)).map((text): unknown => JSON.parse(text).event)

describe.each(engines)('the model of the carrier on $name', (engine) => {
  test('a kill loses at most a minute of what is known about missed pushes and push health', async () => {
    const runs = await openRuns(engine)
    const first = await runs.start()
    await runs.pushed(first, 30)
    runs.pass(20 * MINUTE_MS)
    await runs.found(first)
    expect(await first.settleMissedPushes(runs.pass(11 * MINUTE_MS))).toHaveLength(1)
    await first.checkpointModel()
    const before = await first.pushChannel()
    expect(before).toMatchObject({ health: 'healthy', missed: { count: 1, sinceMs: NOW } })
    await runs.kill()
    runs.pass(HOUR_MS)
    const after = await (await runs.start()).pushChannel()
    expect(after).toEqual({ ...before, missedSincePush: 0 })
  })

  test('the last push with news is known after a kill, however soon the kill comes', async () => {
    const runs = await openRuns(engine)
    const first = await runs.start()
    await runs.pushed(first)
    const firstMs = runs.now()
    await runs.kill()
    runs.pass(HOUR_MS)
    const second = await runs.start()
    expect(await second.pushChannel()).toMatchObject({ health: 'unknown', lastPushAtMs: firstMs })
    await runs.pushed(second, 2)
    await second.checkpointModel()
    await runs.pushed(second)
    const lastMs = runs.now()
    // A push in quarantine brings no news.
    await second.record([incomingPush(Buffer.from('not JSON'), runs.pass(1000))])
    await runs.kill()
    runs.pass(HOUR_MS)
    const third = await runs.start()
    expect(await third.pushChannel()).toMatchObject({ lastPushAtMs: lastMs, restoredAtMs: null })
    await third.close()
    expect(await (await runs.start()).pushChannel()).toMatchObject({ lastPushAtMs: lastMs })
  })

  test('after a restore the last push in the backup counts as the last, until another comes', async () => {
    const runs = await openRuns(engine)
    const first = await runs.start()
    await runs.pushed(first)
    const lastMs = runs.now()
    await first.close()
    const restoredAtMs = runs.pass(HOUR_MS)
    const restores = [{ atMs: restoredAtMs, backup: 'a', madeAtMs: 0, from: 0, to: 1e9, delivered: 0, isTold: true }]
    await runs.write('insert into setting (name, value) values (?, ?)', 'restores', Buffer.from(JSON.stringify(restores)))
    const second = await runs.start()
    expect(await second.pushChannel()).toMatchObject({ lastPushAtMs: lastMs, restoredAtMs })
    await runs.pushed(second)
    expect(await second.pushChannel()).toMatchObject({ lastPushAtMs: runs.now(), restoredAtMs: null })
  })

  test('the learnt scan rate continues to grow after a stop', async () => {
    const runs = await openRuns(engine)
    const learn = async () => {
      const run = await runs.start()
      await runs.pushed(run)
      const [id = ''] = await runs.read('select value as text from identifier order by parcel_id desc limit 1')
      // The second push comes so soon after the first that it is only learnt at the stop.
      for (const ms of [HOUR_MS, MINUTE_MS]) {
        await run.record([incomingPush(pushBody({ trackingIds: [id], eventTime: iso(runs.pass(ms)) }), runs.now())])
      }
      await run.close()
      const [kind] = Object.values((await rhythmOf(runs))?.kinds ?? {})
      return kind?.scans.reduce((sum, scans) => sum + scans, 0)
    }
    expect(await learn()).toBeCloseTo(2, 2)
    expect(await learn()).toBeCloseTo(4, 2)
  })

  test('a kill loses at most an hour of the learnt scan rate', async () => {
    const runs = await openRuns(engine)
    const run = await runs.start()
    await runs.pushed(run)
    await run.record([incomingPush(pushBody({ trackingIds: ['5000'], eventTime: iso(runs.pass(HOUR_MS)) }), runs.now())])
    // The model learns this push only when later pushes have come.
    await runs.pushed(run, 20)
    await run.checkpointModel()
    expect(Object.keys((await rhythmOf(runs))?.kinds ?? {})).not.toEqual([])
  })

  test('a damaged model, or one in another format, is learnt again, and the log says so', async () => {
    const runs = await openRuns(engine)
    const run = await runs.start()
    await runs.pushed(run, 30)
    await run.close()
    const keep = 'insert into setting (name, value) values (?, ?) on conflict (name) do update set value = excluded.value'
    const [channel = ''] = await runs.read("select value as text from setting where name = 'push-channel'")
    await runs.write(keep, 'push-channel', Buffer.from(channel.replace('"format":1', '"format":0')))
    await runs.write(keep, 'rhythm', Buffer.from('{"format":1,"kinds":'))
    const again = await runs.start()
    expect(await again.pushChannel()).toMatchObject({ health: 'unknown', missed: { count: 0 } })
    expect(runs.errors).toEqual([{ setting: 'rhythm' }, { setting: 'push-channel' }])
  })

  test('operators get one event when pushes fall silent, and one when they are reliable again', async () => {
    const runs = await openRuns(engine)
    const first = await runs.start()
    await first.syncEndpoints([], runs.now(), 'http://127.0.0.1:9/')
    const turn = async (run: typeof first) => {
      await run.settleMissedPushes(runs.now())
      return (await run.checkpointModel()).eventQueued
    }
    await runs.pushed(first, 40)
    expect(await turn(first)).toBe(false)
    const told: boolean[] = []
    for (let at = 0; at < 8; at++) {
      runs.pass(20 * MINUTE_MS)
      await runs.found(first)
      told.push(await turn(first))
    }
    expect(told.filter((one) => one)).toHaveLength(1)
    expect((await first.pushChannel()).health).toBe('silent')
    expect(await eventsOf(runs)).toEqual(['pushes_silent'])
    await runs.kill()
    const second = await runs.start()
    expect([await turn(second), (await second.pushChannel()).health]).toEqual([false, 'silent'])
    await runs.pushed(second)
    expect([await turn(second), (await second.pushChannel()).health]).toEqual([false, 'lossy'])
    await second.close()
    const third = await runs.start()
    await runs.pushed(third, 60)
    expect([await turn(third), (await third.pushChannel()).health]).toEqual([false, 'lossy'])
    await runs.found(third)
    runs.pass(10 * MINUTE_MS)
    expect([await turn(third), (await third.pushChannel()).health]).toEqual([true, 'healthy'])
    expect(await eventsOf(runs)).toEqual(['pushes_silent', 'pushes_trusted'])
  })

  test('pushes are trusted again only when few of the newest pushes went into quarantine', async () => {
    const runs = await openRuns(engine)
    const run = await runs.start()
    await run.syncEndpoints([], runs.now(), 'http://127.0.0.1:9/')
    const turn = async () => {
      await run.settleMissedPushes(runs.now())
      await run.checkpointModel()
      return (await run.pushChannel()).health
    }
    await runs.pushed(run, 40)
    for (let at = 0; at < 8; at++) {
      runs.pass(20 * MINUTE_MS)
      await runs.found(run)
      await turn()
    }
    await runs.pushed(run)
    await run.record(Array.from({ length: 3 }, (_, nth) => incomingPush(Buffer.from(`not JSON ${nth}`), runs.now())))
    expect((await run.pushChannel()).newest).toMatchObject({ count: 20, misread: 3, areTooMany: true, misreadAtMs: runs.now() })
    await runs.pushed(run, 18)
    await runs.found(run)
    runs.pass(HOUR_MS)
    expect(await turn()).toBe('lossy')
    await runs.pushed(run, 21)
    await runs.found(run)
    runs.pass(HOUR_MS)
    expect(await turn()).toBe('healthy')
    expect(await eventsOf(runs)).toEqual(['pushes_silent', 'pushes_trusted'])
  })

  test('P12: events while the relay was down do not count as evidence of silent pushes', async () => {
    const runs = await openRuns(engine)
    const first = await runs.start()
    await runs.pushed(first, 40)
    await first.close()
    const downAtMs = runs.now()
    runs.pass(24 * HOUR_MS)
    const second = await runs.start()
    for (let hour = 1; hour < 24; hour++) await runs.found(second, downAtMs + hour * HOUR_MS)
    for (let minutes = 0; minutes < 60; minutes++) await second.settleMissedPushes(runs.pass(MINUTE_MS))
    expect(await second.pushChannel()).toMatchObject({ health: 'healthy', lastPushAtMs: downAtMs, missed: { count: 23 } })
  })
})
