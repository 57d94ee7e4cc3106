import { describe, expect, test } from 'vitest'
import { OVERWRITTEN_MAX } from '../../../src/core/domain/history/overwritten.ts'
import { type LookedBack, liveThroughMonth, openLookBack } from '../../support/insight/simulated-month.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../support/runner/constants.ts'
import { engines } from '../../support/store/engines.ts'
import { DIRECTIONS, moveStore, placeOf } from '../../support/store/moving.ts'
import { changeStoredRows, storedNumber } from '../../support/store/stored-rows.ts'

const rowsIn = ({ path }: LookedBack) => storedNumber(path, 'select count(*) from overwritten')
const polled = (text: string, unknown: object = {}) => ({
  statuses: [{ detailedStatusDescription: text, consumerDescription: text, ...unknown }],
})

/** What an app is told in the latest entry. */
async function textAt(store: LookedBack, atMs: number): Promise<unknown> {
  const found = await store.look('1001', atMs)
  return 'error' in found ? found.error.code : JSON.parse(found.answer.latest ?? '{}').status?.detailedStatusDescription
}

describe.each(engines)('what was known, on $name', (engine) => {
  test('11.2: after the clock is put back, what is learnt counts as later than all that it had shown', async () => {
    const store = await openLookBack(engine)
    await store.push({ status: 'Created', eventTime: '2026-02-27T10:00:00Z' })
    const [early, ahead] = [store.now(), store.pass(2 * HOUR_MS)]
    await store.putBack(HOUR_MS)
    await store.push({ status: 'Ingested' })
    const statusesAt = async (atMs: number) => {
      const found = await store.look('1001', atMs)
      return 'error' in found ? null : found.entries.map(({ status }) => status)
    }
    expect(await statusesAt(early - 1)).toBeNull()
    expect(await statusesAt(early)).toEqual(['Created'])
    expect(await statusesAt(ahead - 1)).toEqual(['Created'])
    expect(await statusesAt(ahead)).toEqual(['Ingested', 'Created'])
  })

  test('11.3: what only adds or repeats keeps nothing; a text that comes back keeps the order of asking', async () => {
    const store = await openLookBack(engine)
    const times: number[] = []
    const poll = async (text: string, language = 'sv') => {
      await store.poll({ ...polled(text), language })
      times.push(store.now())
      store.pass(HOUR_MS)
    }
    await poll('Framme')
    await store.push()
    for (let again = 0; again < 5; again++) await poll('Framme')
    await poll('Arrived', 'en')
    await poll('Framme')
    await poll('Ankommen')
    expect(await rowsIn(store)).toBe(0)
    await poll('Framme')
    expect(await rowsIn(store)).toBe(1)
    const said = await Promise.all(times.map((atMs) => textAt(store, atMs)))
    expect(said).toEqual([...Array.from({ length: 8 }, () => 'Framme'), 'Ankommen', 'Framme'])
  })

  test('11.3: a parcel keeps its last changes only, and says so of what was before them', async () => {
    const store = await openLookBack(engine)
    const times: number[] = []
    for (let revision = 0; revision < OVERWRITTEN_MAX + 6; revision++) {
      await store.poll(polled('Framme', { revision }))
      times.push(store.pass(MINUTE_MS) - 1)
    }
    expect(await rowsIn(store)).toBe(OVERWRITTEN_MAX)
    for (const [revision, atMs] of times.entries()) {
      const found = await store.look('1001', atMs)
      if ('error' in found) throw new Error(found.error.message)
      expect([revision, found.approximate]).toEqual([revision, revision < 6 ? ['limit'] : []])
      if (revision >= 6) expect(JSON.parse(found.answer.all).statuses).toMatchObject([{ revision }])
    }
  })

  test('11.4: what was not known is a 404 with the time from which it is, and says if the carrier had not known it', async () => {
    const store = await openLookBack(engine)
    const before = store.now()
    await store.writes.watch({ identifier: 'AB123456789SE', nowMs: store.now() })
    const asked = store.pass(MINUTE_MS)
    await store.writes.notePollFailure({ parcelId: await store.parcelIdOf('AB123456789SE'), kind: 'unknown', atMs: asked })
    store.pass(HOUR_MS)
    await store.poll()
    const knownFrom = new Date(store.now()).toISOString()
    const refused = { code: 'not_found', facts: { knownFrom } }
    expect(await store.look('AB123456789SE', before)).toMatchObject({
      error: { ...refused, message: expect.stringContaining('Nothing was known') },
    })
    expect(await store.look('AB123456789SE', asked)).toMatchObject({
      error: { ...refused, message: expect.stringContaining('did not know it') },
    })
    expect(await store.look('1001', store.now() - 1)).toMatchObject({ error: { code: 'not_found', facts: { knownFrom } } })
    expect(await textAt(store, store.now())).toBe('Arrived')
    expect(await store.look('NOBODY01', store.now())).toMatchObject({ error: { code: 'not_found', facts: {} } })
  })

  test('11.4: an erasure removes what is kept, and of what was before it a 404 is approximate', async () => {
    const store = await openLookBack(engine)
    for (let revision = 0; revision < 3; revision++) {
      await store.poll(polled('Framme', { revision }))
      store.pass(HOUR_MS)
    }
    expect(await rowsIn(store)).toBe(2)
    const before = store.now()
    store.pass(HOUR_MS)
    await store.forget('1001')
    expect(await rowsIn(store)).toBe(0)
    expect(await store.look('1001', before)).toMatchObject({ error: { code: 'not_found', facts: { approximate: ['erasure'] } } })
    expect(await store.look('1001', store.now())).toMatchObject({ error: { facts: {} } })
  })

  test('11.4: retention removes what is kept, and of what was before it a 404 is approximate', async () => {
    const store = await openLookBack(engine)
    for (let revision = 0; revision < 3; revision++) await store.poll(polled('Framme', { revision }))
    await store.writes.unwatch({ identifier: '1001' })
    const before = store.now()
    for (let day = 0; day < 440 && (await store.reads.findParcel('1001')) !== null; day += 10) {
      store.pass(10 * DAY_MS)
      for (let isDone = false; !isDone; ) isDone = (await store.writes.prune({ nowMs: store.now() })).isDone
    }
    expect(await rowsIn(store)).toBe(0)
    expect(await store.look('1001', before)).toMatchObject({ error: { facts: { approximate: ['retention'] } } })
    expect(await store.look('1001', store.now())).toMatchObject({ error: { facts: {} } })
  })

  test('11.4: of a store from before, what was known before is approximate, and what is learnt later is not', async () => {
    const store = await openLookBack(engine)
    await store.poll(polled('Framme'))
    const before = store.now()
    const since = [await storedNumber(store.path, 'select max(sequence) from sighting'), store.pass(HOUR_MS)]
    const insert = "insert into setting (name, value) values ('overwritten-since', ?)"
    await changeStoredRows(store.path, insert, Buffer.from(JSON.stringify(since)))
    const upgraded = store.pass(HOUR_MS)
    await store.poll(polled('Ankommen'))
    const approximateAt = async (atMs: number) => (await store.answersAt('1001', atMs)).approximate
    expect(await Promise.all([before, upgraded - 1, store.now()].map(approximateAt))).toEqual([['upgrade'], [], []])
    expect(await textAt(store, before)).toBe('Framme')
  })

  test('11.5: what was learnt since is marked, with the doors by which it came', async () => {
    const store = await openLookBack(engine)
    await store.poll({
      statuses: [
        { status: 'Created', eventTimestamp: '2026-02-28T10:00:00Z' },
        { status: 'Ingested', eventTimestamp: '2026-02-28T11:00:00Z' },
      ],
    })
    await store.push({ status: 'Ready', eventTime: '2026-02-28T12:00:00Z' })
    const sinceMs = store.now()
    store.pass(HOUR_MS)
    await store.push({ status: 'Ingested', eventTime: '2026-02-28T11:00:00Z' })
    await store.poll({
      statuses: [
        { status: 'Created', eventTimestamp: '2026-02-28T10:00:00Z', detailedStatusDescription: 'Made' },
        { status: 'Ingested', eventTimestamp: '2026-02-28T11:00:00Z' },
        { status: 'Delivered', eventTimestamp: '2026-02-28T13:00:00Z' },
      ],
    })
    await store.push({ status: 'Delivered', eventTime: '2026-02-28T13:00:00Z' })
    await store.push({ status: 'Signed', eventTime: '2026-02-28T14:00:00Z' })
    await store.poll({ statuses: [{ status: 'Signed', eventTimestamp: '2026-02-28T14:00:00Z' }] })
    const { entries, news } = await store.lookBack({ identifier: '1001', asOfMs: null, sinceMs, language: null })
    expect(entries.map(({ status, sequence }) => [status, news?.get(sequence)])).toEqual([
      ['Signed', { kind: 'new', doors: ['push', 'poll'] }],
      ['Delivered', { kind: 'new', doors: ['poll', 'push'] }],
      ['Ready', undefined],
      ['Ingested', { kind: 'changed', doors: ['push'] }],
      ['Created', { kind: 'changed', doors: ['poll'] }],
    ])
  })
})

test.each(DIRECTIONS)('11.4: a store that is moved from $name knows the same', async ({ from, to }) => {
  const store = await openLookBack(from)
  const { identifiers, said } = await liveThroughMonth(store, 7, 30)
  const target = await placeOf(to)
  const before = new Map<string, unknown>()
  for (const identifier of identifiers)
    for (const { atMs } of said) before.set(`${identifier} ${atMs}`, await store.answersAt(identifier, atMs))
  await store.writes.close()
  await moveStore({ engine: from, place: store.path }, target)
  const moved = await openLookBack(to, target.place)
  moved.setClock(store.now())
  for (const identifier of identifiers)
    for (const { atMs } of said) expect(await moved.answersAt(identifier, atMs)).toEqual(before.get(`${identifier} ${atMs}`))
})
