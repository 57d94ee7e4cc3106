import { describe, expect, test } from 'vitest'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { aPoll, pushBody } from '../../../support/history/builders.ts'
import { HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { storedNumber } from '../../../support/store/stored-rows.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

const timeOf = (atMs: number) => new Date(atMs).toISOString()
const HAPPENED = NOON - HOUR_MS

const pushOf = (trackingIds: readonly string[], text = 'Arrived', atMs = HAPPENED) =>
  incomingPush(pushBody({ trackingIds, eventTime: timeOf(atMs), status: 'TerminalArrived', texts: { en: text } }), NOON)
const pollOf = (id: string, watch: boolean) => ({
  kind: 'poll' as const,
  observation: aPoll({
    asked: id,
    trackingIds: [id],
    language: 'en',
    askedAtMs: NOON,
    statuses: [{ eventTimestamp: timeOf(HAPPENED), status: 'TerminalArrived' }],
  }),
  watch,
})
const join = pushOf(['1001', '2002'], 'Joined', NOON)
const timesIn = (taken: readonly { readonly body: unknown }[]) =>
  taken.map(({ body }) => Date.parse(/"eventTime":"([^"]+)"/.exec(String(body))?.[1] ?? ''))

type Store = Awaited<ReturnType<typeof openStore>>['writes']
async function catchUp(writes: Store): Promise<void> {
  while (!(await writes.replayFeed({ limit: 1, nowMs: NOON })).isDone);
}

describe.each(engines)('reading the feed beside a join on $name', (engine) => {
  test.each([1, 100])('7.1, 1.4: an entry that two parcels reported is sent once, read by %d', async (limit) => {
    const { writes } = await openStore(NOON, engine)
    await writes.record([pushOf(['1001'])])
    await writes.record([pushOf(['2002'], 'Framme')])
    await writes.record([join])
    const reader = await addEndpoint(writes, NOON, { name: 'reader', from: 1 })
    while (!(await writes.replayFeed({ limit, nowMs: NOON })).isDone);
    expect(timesIn(await reader.take())).toEqual([HAPPENED, NOON])
  })

  test('7.1, 1.4: an entry read before the join is not sent again after it', async () => {
    const { writes } = await openStore(NOON, engine)
    await writes.record([pushOf(['1001'])])
    await writes.record([pushOf(['2002'], 'Framme')])
    const reader = await addEndpoint(writes, NOON, { name: 'reader', from: 1 })
    await writes.replayFeed({ limit: 1, nowMs: NOON })
    await writes.record([join])
    await catchUp(writes)
    expect(timesIn(await reader.take())).toEqual([HAPPENED, NOON])
  })

  test('7.1, 1.4: of two equal sightings, the event for the reader is sent after the join', async () => {
    const { writes } = await openStore(NOON, engine)
    // Backfill in the first parcel, but newer than the relay's knowledge of the second one.
    await writes.record([pollOf('1001', true)])
    await writes.record([pushOf(['2002'], 'Earlier', HAPPENED - HOUR_MS)])
    await writes.record([pollOf('2002', false)])
    await writes.record([join])
    const reader = await addEndpoint(writes, NOON, { name: 'reader', from: 1 })
    await catchUp(writes)
    expect(timesIn(await reader.take())).toEqual([HAPPENED - HOUR_MS, HAPPENED, NOON])
  })

  test('7.1, 1.4: a push for those left out as backfill is sent after a join of equal sightings', async () => {
    const { writes } = await openStore(NOON, engine)
    await writes.record([pushOf(['1001'])])
    const reader = await addEndpoint(writes, NOON, { name: 'reader', from: 2 })
    await writes.record([pollOf('2002', true)])
    await writes.record([pushOf(['2002'])])
    await writes.record([join])
    await catchUp(writes)
    expect(timesIn(await reader.take())).toEqual([HAPPENED, NOON])
  })

  // Joined in every order, and read from each of the events about the entry on. Between them the relay records much else.
  test.each([
    '1001 2002, 1001 3003, 1001 4004',
    '3003 4004, 2002 3003, 1001 2002',
    '2002 4004, 1001 3003, 3003 4004',
    '2002 3003 4004, 1001 4004',
    '1001 2002 3003 4004',
  ])('7.1, 1.4: an entry of four parcels is sent once after the joins %s', async (joins) => {
    const { writes, path } = await openStore(NOON, engine)
    const firsts: number[] = []
    for (const id of ['1001', '2002', '3003', '4004']) {
      await writes.record([pushOf([id])])
      firsts.push(await storedNumber(path, 'select max(sequence) from feed'))
      for (let nth = 0; nth < 5; nth++) await writes.record([pushOf(['9009'], 'Elsewhere', NOON - firsts.length * 60_000 - nth * 1000)])
    }
    for (const [nth, ids] of joins.split(', ').entries()) await writes.record([pushOf(ids.split(' '), 'Joined', NOON + nth)])
    for (const [nth, from] of firsts.entries()) {
      const reader = await addEndpoint(writes, NOON, { name: `reader ${nth}`, from })
      await catchUp(writes)
      expect([nth, timesIn(await reader.take()).filter((atMs) => atMs === HAPPENED)]).toEqual([nth, [HAPPENED]])
    }
  })
})
