import { describe, expect, test } from 'vitest'
import { type Entry, learningOf } from '../../../../src/core/domain/history/history.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { MINUTE_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { DIRECTIONS, moveStore, placeOf } from '../../../support/store/moving.ts'
import { changeStoredRows } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

const PUSHED = { eventTime: '2026-03-01T10:00:00.250Z' }
const POLLED = { asked: '1001', statuses: [{ eventTimestamp: '2026-03-01T10:00:00Z' }] }

async function openLearning(engine: Engine, place: string | null = null) {
  const store = await openStore(NOON, engine, place)
  /** Returns for each entry, by its time, who found it and how many minutes after noon. */
  const learnings = async (identifier = '1001') => {
    const entries = (await store.reads.inspectParcel(identifier))?.entries ?? []
    return Object.fromEntries(entries.map((entry) => [entry.eventTimestamp, inMinutes(entry)]))
  }
  return { ...store, learnings, later: () => store.pass(MINUTE_MS) }
}

function inMinutes(entry: Entry): readonly string[] {
  const { first, confirmed } = learningOf(entry)
  return [first, ...(confirmed === null ? [] : [confirmed])].map(
    ({ source, atMs }) => `${source} ${atMs === null ? '?' : (atMs - NOON) / MINUTE_MS}`,
  )
}

describe.each(engines)('when an entry was learnt, on $name', (engine) => {
  test('an entry pushed and then polled was learnt by the push and confirmed by the poll', async () => {
    const { push, poll, later, learnings } = await openLearning(engine)
    await push(PUSHED)
    expect(await learnings()).toEqual({ '2026-03-01T10:00:00.250Z': ['push 0'] })
    later()
    await poll(POLLED)
    expect(await learnings()).toEqual({ '2026-03-01T10:00:00Z': ['push 0', 'poll 1'] })
  })

  test('an entry polled and then pushed was learnt by the poll and confirmed by the push', async () => {
    const { push, poll, later, learnings } = await openLearning(engine)
    await poll(POLLED)
    later()
    await push(PUSHED)
    expect(await learnings()).toEqual({ '2026-03-01T10:00:00Z': ['poll 0', 'push 1'] })
  })

  test('a later poll, a poll in another language and a repeated push change nothing', async () => {
    const { push, poll, later, learnings } = await openLearning(engine)
    await poll(POLLED)
    later()
    await push(PUSHED)
    for (const language of ['en', 'sv', 'en']) {
      later()
      await poll({ ...POLLED, language })
      await poll({ ...POLLED, language, statuses: [{ ...POLLED.statuses[0], ageSeconds: 7 }] })
      await push(PUSHED)
    }
    expect(await learnings()).toEqual({ '2026-03-01T10:00:00Z': ['poll 0', 'push 1'] })
  })

  test('a join keeps for each entry the earliest time at which one of the parcels learnt it', async () => {
    const { push, later, learnings } = await openLearning(engine)
    const shared = { eventTime: '2026-03-01T11:00:00.250Z' }
    await push(PUSHED)
    later()
    await push({ ...shared, trackingIds: ['2001'] })
    later()
    await push(shared)
    later()
    await push({ eventTime: '2026-03-01T11:30:00Z', trackingIds: ['2001', '1001'] })
    const learnt = {
      '2026-03-01T10:00:00.250Z': ['push 0'],
      '2026-03-01T11:00:00.250Z': ['push 1'],
      '2026-03-01T11:30:00Z': ['push 3'],
    }
    expect([await learnings('1001'), await learnings('2001')]).toEqual([learnt, learnt])
  })

  test('an entry that was stored without a learning time has none, even after another poll', async () => {
    const { push, poll, later, learnings, path } = await openLearning(engine)
    await push(PUSHED)
    await poll(POLLED)
    await changeStoredRows(path, 'update sighting set learnt_at_ms = null')
    later()
    await poll(POLLED)
    await push({ eventTime: '2026-03-01T11:00:00Z' })
    expect(await learnings()).toEqual({ '2026-03-01T10:00:00Z': ['push ?', 'poll ?'], '2026-03-01T11:00:00Z': ['push 1'] })
  })
})

test.each(DIRECTIONS)('the times at which entries were learnt move with the store from $name', async ({ from, to }) => {
  const [old, next] = [await placeOf(from), await placeOf(to)]
  const before = await openLearning(from, old.place)
  await before.poll(POLLED)
  before.later()
  await before.push(PUSHED)
  await before.writes.close()
  await moveStore(old, next)
  const after = await openLearning(to, next.place)
  await after.poll({ ...POLLED, askedAtMs: NOON + 9 * MINUTE_MS })
  expect(await after.learnings()).toEqual({ '2026-03-01T10:00:00Z': ['poll 0', 'push 1'] })
})
