import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test, vi } from 'vitest'
import { keepOpen } from '../../../../src/core/store/sqlite/file.ts'
import {
  createCleaner,
  createFileSearch,
  noteOverwritten,
  overwriteDeleted,
  readStorageState,
} from '../../../../src/upkeep/erasure/clean-storage.ts'
import { compactStore } from '../../../../src/upkeep/retention/compact.ts'
import { pushBody } from '../../../support/history/builders.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { drawWith, seeded } from '../../../support/runner/seeded.ts'
import { temporaryFolder } from '../../../support/runner/temporary.ts'
import { filesThatHold } from '../../../support/store/all-rows.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'
import { leaveLeftovers, SHARED_WORD } from './leave-leftovers.ts'

const PARCELS = 1200
const [PUSHED_AT_ONCE, ERASED_AT_ONCE] = [50, 20]

async function open(place: string | null = null) {
  const store = await openStore(NOON, undefined, place)
  await store.writes.useTombstoneKey(Buffer.alloc(32, 1))
  const { writes } = store
  const erase = async (...identifiers: readonly string[]) => {
    const erased = await writes.eraseParcels({ identifiers, nowMs: store.now(), dryRun: false })
    await writes.endErasures({ identifiers: await writes.unfinishedErasures(), isLate: false, unreadable: 0 })
    return erased
  }
  /** Waits until the search has ended. */
  const settled = async () =>
    await vi.waitFor(async () => {
      const state = await store.writes.cleanStorage()
      expect(state).not.toMatchObject({ because: expect.stringContaining('still being searched') })
      return state
    })
  return { ...store, erase, settled }
}

type Opened = Awaited<ReturnType<typeof open>>

/** Records parcels, and erases them in another order, some at a time. Stops when the raw file still contains an erased identifier, and returns it. */
async function plant({ record, erase, settled, path, now }: Opened): Promise<string> {
  const { below } = drawWith(seeded(7))
  const names = Array.from({ length: PARCELS }, (_, nth) => `${below(1e9)}N${nth}Q`)
  for (let at = 0; at < PARCELS; at += PUSHED_AT_ONCE)
    await record(
      ...names
        .slice(at, at + PUSHED_AT_ONCE)
        .map((name) => incomingPush(pushBody({ trackingIds: [name], texts: { en: `Text of ${name}` } }), now())),
    )
  const reversed = (text: string) => [...text].reverse().join('')
  const shuffled = names.map(reversed).sort().map(reversed)
  for (let at = 0; at < PARCELS; at += ERASED_AT_ONCE) {
    const some = shuffled.slice(at, at + ERASED_AT_ONCE)
    await erase(...some)
    const state = await settled()
    const [left] = filesThatHold(path, some)
    expect(state.state).toBe(left === undefined ? 'clean' : 'pending')
    if (left !== undefined) return left.replace('database: ', '')
  }
  throw new Error('SQLite left nothing, so this test shows nothing')
}

test('storage is pending while unused parts of pages hold an erased word; a compaction cleans it', async () => {
  const store = await open()
  const left = await plant(store)
  await store.push({ trackingIds: ['OTHER001'] })
  const because = expect.stringMatching(/^\d+ leftovers? of what was erased .* prune --compact/)
  expect(await store.settled()).toEqual({ state: 'pending', because })
  await store.writes.close()
  expect(readStorageState(store.path)).toEqual({ state: 'pending', because: expect.stringMatching(/^Leftovers of what was erased/) })
  const again = await open(store.path)
  expect((await again.erase(left)).results).toMatchObject([{ outcome: 'erased_before' }])
  expect(await again.settled()).toEqual(readStorageState(store.path))
  await again.writes.close()
  await compactStore(store.path)
  expect(filesThatHold(store.path, [left])).toEqual([])
  const last = await open(store.path)
  expect((await last.erase(left)).results).toMatchObject([{ outcome: 'erased_before' }])
  expect(await last.settled()).toEqual({ state: 'clean' })
  await last.erase('OTHER001')
  expect(await last.settled()).toEqual({ state: 'clean' })
})

test('an erased identifier in a push about a living parcel does not count as a leftover', async () => {
  const { path, push, erase, settled } = await open()
  await push({ trackingIds: ['LIVING01'] })
  await push({ trackingIds: ['GONE0001'] })
  await erase('GONE0001')
  await push({ trackingIds: ['LIVING01', 'GONE0001'], eventTime: '2026-03-01T11:00:00.250Z' })
  await push({ trackingIds: ['GONE0001X'] })
  await push({ trackingIds: ['GONE0002'] })
  await erase('GONE0002')
  expect(await settled()).toEqual({ state: 'clean' })
  expect(filesThatHold(path, ['GONE0001', 'GONE0002'])).toEqual(['database: GONE0001'])
})

/** Opens a cleaner on a file. The test can hold up its searches, and decides how long a caller waits for one. */
function cleanerOn(path: string) {
  const db = new Database(path)
  overwriteDeleted(db, db.pragma('page_count', { simple: true }) === 0)
  db.pragma('journal_mode = WAL')
  const real = createFileSearch(keepOpen(path))
  const searched: (readonly string[])[] = []
  const state = { gate: Promise.resolve(), patience: new Promise<void>(() => undefined) }
  const searching: ReturnType<typeof createFileSearch> = {
    async search(words) {
      searched.push([...words.identifiers])
      await state.gate
      return await real.search(words)
    },
    close: () => real.close(),
  }
  let last: Promise<unknown> = Promise.resolve()
  const cleaner = createCleaner(db, {
    inTurn(work) {
      const turn = last.then(work)
      last = turn.catch(() => undefined)
      return turn
    },
    searching,
    patience: () => state.patience,
    busyTimeoutMs: 100,
  })
  const close = async () => {
    await cleaner.close()
    db.close()
  }
  onTestFinished(close)
  const erase = (identifiers: readonly string[], texts: readonly string[] = []) => {
    cleaner.noteErased({ identifiers, texts })
    cleaner.committed()
  }
  return { path, cleaner, state, searched, erase, close }
}

const newCleaner = () => cleanerOn(join(temporaryFolder(), 'relay.db'))
const CLEAN = { state: 'clean' }
const pendingFor = (words: string) => ({ state: 'pending', because: expect.stringContaining(words) })

test('one search serves all erasures that come while another is under way', async () => {
  const { cleaner, state, searched, erase } = newCleaner()
  const gate = Promise.withResolvers<void>()
  state.gate = gate.promise
  erase(['FIRST001'])
  const first = cleaner.clean()
  await vi.waitFor(() => expect(searched).toHaveLength(1))
  const others = Array.from({ length: 50 }, (_, nth) => {
    erase([`OTHER${100 + nth}`])
    return cleaner.clean()
  })
  gate.resolve()
  expect(await Promise.all([first, ...others])).toEqual(Array.from({ length: 51 }, () => CLEAN))
  expect(searched).toEqual([['FIRST001'], Array.from({ length: 50 }, (_, nth) => `OTHER${100 + nth}`)])
  expect(await cleaner.clean()).toEqual(CLEAN)
  expect(searched).toHaveLength(2)
})

test('a caller that waits too long learns that the search goes on; a later call gets its result', async () => {
  const { path, cleaner, state, erase } = newCleaner()
  const gate = Promise.withResolvers<void>()
  Object.assign(state, { gate: gate.promise, patience: Promise.resolve() })
  erase(['GONE0001'])
  expect(await cleaner.clean()).toEqual(pendingFor('still being searched'))
  expect(readStorageState(path)).toEqual(pendingFor('A running relay ends it soon'))
  gate.resolve()
  await vi.waitFor(() => expect(readStorageState(path)).toEqual(CLEAN))
  state.patience = new Promise(() => undefined)
  expect(await cleaner.clean()).toEqual(CLEAN)
})

test('the words of an erasure that was rolled back are not searched for', async () => {
  const { cleaner, searched } = newCleaner()
  cleaner.noteErased({ identifiers: ['LIVING01'], texts: [] })
  cleaner.rolledBack()
  expect(await cleaner.clean()).toEqual(CLEAN)
  expect(searched).toEqual([])
})

test('if a relay ended without searching for erased words, storage is pending until a compaction', async () => {
  const first = newCleaner()
  Object.assign(first.state, { gate: new Promise(() => undefined), patience: Promise.resolve() })
  first.erase(['GONE0001'])
  await first.cleaner.clean()
  await first.close()
  const second = cleanerOn(first.path)
  second.erase(['GONE0002'])
  expect(await second.cleaner.clean()).toEqual(pendingFor('ended before it had searched'))
  expect(second.searched).toEqual([])
  await second.close()
  await compactStore(first.path)
  expect(await cleanerOn(first.path).cleaner.clean()).toEqual(CLEAN)
})

test('a search that fails is made again', async () => {
  const { cleaner, state, searched, erase } = newCleaner()
  state.gate = Promise.reject(new Error('the disk is failing'))
  erase(['GONE0001'])
  expect(await cleaner.clean()).toEqual(pendingFor('the disk is failing'))
  state.gate = Promise.resolve()
  expect(await cleaner.clean()).toEqual(CLEAN)
  expect(searched).toEqual([['GONE0001'], ['GONE0001']])
})

test('words of erased texts count as leftovers if no stored row contains them', async () => {
  const { path, gone } = leaveLeftovers(5)
  const standing = new Set(Array.from(readFileSync(path, 'latin1').matchAll(/X\d+N\d+Q/g), ([word]) => word))
  const left = gone.filter((word) => standing.has(word))
  noteOverwritten(path)
  const { cleaner, erase } = cleanerOn(path)
  erase([], [SHARED_WORD, 'NOWHERE1'])
  expect(await cleaner.clean()).toEqual(CLEAN)
  erase([], [SHARED_WORD, ...left])
  expect(await cleaner.clean()).toEqual(pendingFor('leftover'))
})
