import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { SERVER_STORES } from '../../../src/server/postgres/server-stores.ts'
import { makeBackup } from '../../../src/upkeep/backups/make-backup.ts'
import { restoreBackup } from '../../../src/upkeep/restore/restore-backup.ts'
import { sqlite } from '../../../src/upkeep/sqlite-engine.ts'
import { type LookedBack, liveThroughMonth, openLookBack } from '../../support/insight/simulated-month.ts'
import { OPERATOR } from '../../support/relay/operator.ts'
import { HOUR_MS } from '../../support/runner/constants.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { engines, newPlace } from '../../support/store/engines.ts'
import { rebuildStore } from '../../support/store/rebuilt-store.ts'
import { changeStoredRows, storedNumber } from '../../support/store/stored-rows.ts'

const polled = (text: string) => ({ statuses: [{ detailedStatusDescription: text, consumerDescription: text }] })
const approximateAt = async (store: LookedBack, id: string, atMs: number) => (await store.answersAt(id, atMs)).approximate
const changesKept = ({ path }: LookedBack) => storedNumber(path, 'select count(*) from overwritten')

/** Ways to damage what is stored of the parcel 1001. */
const DAMAGES = {
  'an entry that is shown': "update content set json = replace(json, 'Ankommen', 'Planted')",
  'an entry that a later answer has changed since': "update content set json = replace(json, 'Hämtas', 'Planted')",
  'an unknown member': `update sighting set extra = '[["weight","1"]]' where parcel_id = (select parcel_id from identifier where value = '1001')`,
}

describe.each(engines)('what was known before a rebuild, on $name', (engine) => {
  /** A parcel whose text was reworded, and another parcel. Returns the times at which each was learnt. */
  async function twoParcels() {
    const store = await openLookBack(engine)
    const times: number[] = []
    for (const text of ['Hämtas', 'Ankommen']) {
      await store.poll(polled(text))
      times.push(store.now())
      store.pass(HOUR_MS)
    }
    await store.push({ trackingIds: ['2001'] })
    store.pass(HOUR_MS)
    return { store, times }
  }

  test.each(Object.entries(DAMAGES))(
    '11.4: one that corrects %s makes what was before it approximate, of that parcel alone',
    async (_, damage) => {
      const { store, times } = await twoParcels()
      const before = await Promise.all(times.map((atMs) => store.answersAt('1001', atMs)))
      await changeStoredRows(store.path, damage)
      const rebuiltMs = store.now()
      expect(await rebuildStore(store)).toMatchObject({ differing: 1 })
      for (const [at, atMs] of times.entries())
        expect(await store.answersAt('1001', atMs)).toEqual({ answers: before[at]?.answers, approximate: ['rebuild'] })
      expect(await approximateAt(store, '1001', rebuiltMs - 1)).toEqual(['rebuild'])
      expect(await approximateAt(store, '1001', store.pass(HOUR_MS))).toEqual([])
      expect(await approximateAt(store, '2001', rebuiltMs - 1)).toEqual([])
      await store.poll(polled('Utlämnad'))
      expect(await approximateAt(store, '1001', store.now() - 1)).toEqual([])
    },
  )

  test('11.4: one that corrects nothing changes no answer, and keeps nothing', async () => {
    const { store, times } = await twoParcels()
    const before = await Promise.all(times.map((atMs) => store.answersAt('1001', atMs)))
    const kept = await changesKept(store)
    expect(await rebuildStore(store)).toMatchObject({ differing: 0 })
    expect(await Promise.all(times.map((atMs) => store.answersAt('1001', atMs)))).toEqual(before)
    expect(before.map(({ approximate }) => approximate)).toEqual([[], []])
    expect(await changesKept(store)).toBe(kept)
  })
})

/** Asks of all identifiers at all times. */
async function answersAtAll(store: LookedBack, identifiers: readonly string[], times: readonly number[]) {
  const answers = new Map<string, Awaited<ReturnType<LookedBack['answersAt']>>>()
  for (const identifier of identifiers)
    for (const atMs of times) answers.set(`${identifier} ${atMs}`, await store.answersAt(identifier, atMs))
  return answers
}

test('11.4: after a restore what the backup knew is told as before it, and what was after it is approximate until the restore', async () => {
  const place = await newPlace(sqlite)
  const store = await openLookBack(sqlite, place)
  const { identifiers, said } = await liveThroughMonth(store, 3, 40)
  const times = said.map(({ atMs }) => atMs)
  const before = await answersAtAll(store, identifiers, times)
  const backedUpMs = Math.max(...times, store.now()) + HOUR_MS
  await store.writes.close()
  writeFileSync(`${place}.key`, `${Buffer.alloc(32, 7).toString('base64')}\n`)
  await changeStoredRows(place, `vacuum into '${place}.copy'`)
  const directory = temporaryFolder()
  const backup = { name: 'first', directory, copy: `${place}.copy`, keyFile: `${place}.key`, madeAtMs: backedUpMs }
  for (const work = makeBackup({ ...backup, version: '1', keys: [], sequence: 0, keep: 2, lastPlace: null }); work.next().done !== true; );

  const lost = await openLookBack(sqlite, place)
  lost.setClock(backedUpMs + HOUR_MS)
  const news = () => ({ eventTime: '2026-03-02T10:00:00Z', texts: { sv: 'Bara här' } })
  for (const id of ['10001', '9999']) await lost.push({ trackingIds: [id], ...news() })
  const lostMs = lost.now()
  expect(JSON.stringify(await lost.answersTo('10001'))).toContain('Bara här')
  await lost.writes.close()
  const restoredMs = lost.pass(HOUR_MS)
  await restoreBackup(
    {
      store: place,
      file: join(directory, 'first.db'),
      last: null,
      tombstones: null,
      forgetsErasures: false,
      isConfirmed: true,
      isOtherRelay: false,
      nowMs: restoredMs,
      by: OPERATOR,
    },
    { onStep: () => undefined, proveKeys: async () => ({ otherKeys: [], lostKeys: [], tombstoneKey: null }) },
  )

  const restored = await openLookBack(sqlite, place)
  restored.setClock(restoredMs + HOUR_MS)
  expect(await answersAtAll(restored, identifiers, times)).toEqual(before)
  const last = before.get(`10001 ${Math.max(...times)}`)
  const restore = expect.arrayContaining(['restore'])
  expect(await restored.answersAt('10001', lostMs)).toEqual({ answers: last?.answers, approximate: restore })
  // The lost store knew a parcel that the backup does not know.
  expect(await restored.answersAt('9999', lostMs)).toEqual({ answers: null, approximate: ['restore'] })
  for (const id of ['10001', '9999']) {
    expect(await approximateAt(restored, id, backedUpMs - 1)).not.toContain('restore')
    expect(await approximateAt(restored, id, restoredMs - 1)).toContain('restore')
    expect(await approximateAt(restored, id, restoredMs)).not.toContain('restore')
  }
  await restored.push({ trackingIds: ['9999'], ...news() })
  const { answers, approximate } = await restored.answersAt('9999', restored.now())
  expect([approximate, answers]).toEqual([[], await restored.answersTo('9999')])
  expect(await approximateAt(restored, '9999', lostMs)).toEqual(['restore'])
})

test('11.4: nobody knows from when the backup of a database is, so all before the mark of its restore is approximate', async () => {
  const url = await newPlace(postgres)
  const store = await openLookBack(postgres, url)
  await store.poll(polled('Framme'))
  const [learntMs, markedMs] = [store.now(), store.pass(HOUR_MS)]
  await store.writes.close()
  await SERVER_STORES.markRestored({ address: url, last: 1000, tombstones: null, nowMs: markedMs, by: OPERATOR })
  const marked = await openLookBack(postgres, url)
  marked.setClock(markedMs + HOUR_MS)
  expect(await approximateAt(marked, '1001', learntMs)).toEqual(['restore'])
  expect(await approximateAt(marked, '1001', markedMs)).toEqual([])
})
