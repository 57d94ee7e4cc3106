import { describe, expect, test } from 'vitest'
import { aPoll, pushBody } from '../../../support/history/builders.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { byForm } from '../../../support/runner/long-form.ts'
import { engines } from '../../../support/store/engines.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

const RACES = byForm(20, 40, 200)
const timeOf = (at: number) => new Date(NOON - at * 1000).toISOString()

describe.each(engines)('histories on $name', (engine) => {
  test('pushes of one new parcel that are recorded simultaneously are all kept, in one parcel', async () => {
    const { record, reads } = await openStore(NOON, engine)
    for (let race = 0; race < RACES; race++) {
      const id = String(10_000 + race)
      const batches = Array.from({ length: 3 }, (_, at) =>
        record(...[0, 1, 2].map((entry) => incomingPush(pushBody({ trackingIds: [id], eventTime: timeOf(at * 3 + entry) }), NOON))),
      )
      await Promise.all(batches)
      expect((await reads.findParcel(id))?.entries).toHaveLength(9)
    }
    expect((await reads.counts(NOON)).parcels).toBe(RACES)
  })

  test('the contents of an answer can be read after the store is opened again', async () => {
    const { poll, reads, writes, path } = await openStore(NOON, engine)
    await poll({ asked: '1001', trackingIds: ['1001', '1002'], statuses: [{ eventTimestamp: timeOf(1) }, { eventTimestamp: timeOf(2) }] })
    const before = await reads.findParcel('1002')
    await writes.close()
    const store = await engine.openWriteStore(path)
    await store.close()
    const again = engine.openReadStore(path)
    expect(await again.findParcel('1001')).toEqual(before)
    await again.close()
  })

  test('2.2: a time is served as the carrier wrote it, even after a restart', async () => {
    const { poll, record, reads, writes, path } = await openStore(NOON, engine)
    const forms = Array.from({ length: 9 }, (_, at) => ['123456789', '000000000'].map((digits) => digits.slice(0, at + 1))).flat()
    const recent = ['2026-03-01T09:59Z', '2026-03-01T09:59:59Z', ...forms.map((digits, at) => `2026-03-01T10:00:${10 + at}.${digits}Z`)]
    const times = ['1969-12-31T23:59Z', '1969-12-31T23:59:58.0100099Z', ...recent]
    await poll({ asked: '1001', trackingIds: ['1001'], statuses: times.toReversed().map((eventTimestamp) => ({ eventTimestamp })) })
    await record(...recent.map((eventTime) => incomingPush(pushBody({ trackingIds: ['1002'], eventTime }), NOON)))
    const timesOf = async (of: typeof reads, id: string) => (await of.findParcel(id))?.entries.map((entry) => entry.eventTimestamp)
    const written = [await timesOf(reads, '1001'), await timesOf(reads, '1002')]
    expect(written).toEqual([times.toReversed(), recent.toReversed()])
    await writes.close()
    const again = engine.openReadStore(path)
    expect([await timesOf(again, '1001'), await timesOf(again, '1002')]).toEqual(written)
    await again.close()
  })

  test('a reader that follows the feed misses no sequence, however many writers record', async () => {
    const { record, reads } = await openStore(NOON, engine)
    const recording = Promise.all(
      Array.from({ length: 6 }, async (_, writer) => {
        for (let at = 0; at < 25; at++) {
          const ids = [String(20_000 + at), String(30_000 + writer)]
          await record(...ids.map((id) => incomingPush(pushBody({ trackingIds: [id], eventTime: timeOf(writer * 100 + at) }), NOON)))
        }
      }),
    )
    const seen: number[] = []
    let isOver = false
    const done = recording.then(() => {
      isOver = true
    })
    const read = async () => {
      const { items } = await reads.readFeed({ after: seen.at(-1) ?? 0, limit: 50 })
      seen.push(...items.map(({ sequence }) => sequence))
      return items.length
    }
    while (!isOver) await read()
    while ((await read()) > 0);
    await done
    const all: number[] = []
    for (let after = 0, more = true; more; ) {
      const { items, next } = await reads.readFeed({ after, limit: 100 })
      all.push(...items.map(({ sequence }) => sequence))
      more = items.length > 0
      after = next
    }
    expect(seen).toEqual(all)
    expect(seen.length).toBeGreaterThanOrEqual(300)
  })

  test('1.2, 1.4: two parcels that one answer names become one, found by every identifier', async () => {
    const { push, record, reads } = await openStore(NOON, engine)
    await push({ trackingIds: ['1001'], eventTime: timeOf(1) })
    await push({ trackingIds: ['1002'], eventTime: timeOf(2) })
    const naming = aPoll({ asked: '1001', trackingIds: ['1001', '1002'], askedAtMs: NOON, statuses: [{ eventTimestamp: timeOf(3) }] })
    await record({ kind: 'poll', observation: naming, watch: true })
    const [one, other] = [await reads.findParcel('1001'), await reads.findParcel('1002')]
    expect(one?.entries).toHaveLength(3)
    expect(other).toEqual(one)
  })
})
