import { expect, test } from 'vitest'
import { createUnstored, type Kept, type UnstoredItems, type Unwritten } from '../../../src/console/events/unstored.ts'
import { StorageFailure } from '../../../src/core/domain/errors.ts'
import { NOON } from '../../support/runner/constants.ts'
import { createLogBook } from '../../support/runner/log-book.ts'

function fileOfItems() {
  const written: (readonly Kept[])[] = []
  const file: UnstoredItems = {
    read: () => written.at(-1) ?? [],
    async write(items) {
      written.push(structuredClone(items))
    },
  }
  return { file, written }
}

const trouble = (subject: string): Unwritten => ({
  kind: 'trouble',
  begun: { subject, event: { event: 'disk_full', freeBytes: 0, freeBytesMin: 9 }, nowMs: NOON },
})
const REFUSED: Unwritten = { kind: 'refused', save: { spells: [], nowMs: NOON } }
const reload = (problem: string): Unwritten => ({
  kind: 'event',
  event: { event: 'reload_failed', replica: 'one', problems: [problem] },
  atMs: NOON,
})

function open({ file, nowMs = NOON }: { readonly file: UnstoredItems | null; readonly nowMs?: number } = { file: null }) {
  const stored: unknown[] = []
  const posted: { readonly event: Record<string, unknown>; readonly id: string }[] = []
  const { log, lines } = createLogBook()
  const now = { failure: null as Error | null, isHeard: true, posting: async () => undefined as unknown }
  const take = (name: string) => async (request: unknown) => {
    if (now.failure !== null) throw now.failure
    stored.push([name, request])
  }
  const unstored = createUnstored({
    write: {
      async beginTrouble(begun) {
        await take('trouble')(begun)
        return true
      },
      async endBackup(end) {
        await take('backup')(end)
        return true
      },
      recordOperatorEvent: (event, atMs, given) => take('event')({ event, atMs, ...given }),
      saveRefused: take('refused'),
      addTallies: take('tallies'),
      noteDown: take('down'),
    },
    file,
    clock: { now: () => nowMs },
    log,
    wake: () => undefined,
  })
  const round = async () => {
    await unstored.retry(async (event, id) => {
      await now.posting()
      posted.push({ event: JSON.parse(String(Buffer.from(event))), id })
      return now.isHeard
    })
    // What is posted is not awaited.
    await new Promise((resolve) => setImmediate(resolve))
  }
  const fail = () => {
    now.failure = new StorageFailure('the disk is full')
  }
  return { unstored, stored, posted, lines, now, round, fail, events: () => posted.map(({ event }) => event.event) }
}

test('what the store takes is written at once, is not kept, and is not posted', async () => {
  const { file, written } = fileOfItems()
  const { unstored, stored, posted, round } = open({ file })
  await unstored.write(trouble('disk full'))
  expect(stored).toEqual([['trouble', expect.objectContaining({ subject: 'disk full', isPosted: false })]])
  expect(unstored.sinceMs('disk full')).toBe(null)
  for (let times = 0; times < 3; times++) await round()
  expect([posted, written]).toEqual([[], []])
})

test('what the store refuses is posted once, in order, with one id, and stored later as posted', async () => {
  const { unstored, stored, events, posted, now, round, fail } = open()
  fail()
  await unstored.write(trouble('disk full'))
  await unstored.write(reload('no such file'))
  expect(unstored.sinceMs('disk full')).toBe(NOON)
  await round()
  // The failure of a moment is no reason to post.
  expect(posted).toEqual([])
  now.isHeard = false
  for (let times = 0; times < 2; times++) await round()
  expect(events()).toEqual(['disk_full', 'disk_full'])
  expect(new Set(posted.map(({ id }) => id)).size).toBe(1)
  expect(posted[0]?.event).toMatchObject({ at: new Date(NOON).toISOString() })
  now.isHeard = true
  for (let times = 0; times < 3; times++) await round()
  expect(events()).toEqual(['disk_full', 'disk_full', 'disk_full', 'reload_failed'])
  now.failure = null
  for (let times = 0; times < 3; times++) await round()
  expect(stored).toEqual([
    ['trouble', expect.objectContaining({ subject: 'disk full', nowMs: NOON, isPosted: true })],
    ['event', expect.objectContaining({ atMs: NOON, isPosted: true })],
  ])
  expect(events()).toHaveLength(4)
})

test('an event is not stored while it is posted, or it would be queued too', async () => {
  const { unstored, stored, now, round, fail } = open()
  fail()
  await unstored.write(trouble('disk full'))
  await round()
  const answer = Promise.withResolvers<void>()
  now.posting = () => answer.promise
  await round()
  now.failure = null
  await round()
  expect(stored).toEqual([])
  answer.resolve()
  for (let times = 0; times < 2; times++) await round()
  expect(stored).toEqual([['trouble', expect.objectContaining({ isPosted: true })]])
})

test('what a run could not store, the next one stores in its order, and then clears the file', async () => {
  const { file, written } = fileOfItems()
  const first = open({ file })
  first.fail()
  const flush = { by: 'one', number: 3, additions: [] }
  first.unstored.add(() => [{ kind: 'tallies', flush }, REFUSED])
  await first.unstored.write(trouble('disk full'))
  await first.unstored.write({ ...reload('x'), action: ACTION } as Unwritten)
  for (let times = 0; times < 3; times++) await first.round()
  const next = open({ file })
  await next.unstored.retry()
  expect(next.stored.map((one) => (one as readonly unknown[])[0])).toEqual(['refused', 'trouble', 'event', 'tallies'])
  expect(next.stored[1]).toEqual(['trouble', expect.objectContaining({ isPosted: true })])
  expect(next.stored[2]).toEqual(['event', expect.objectContaining({ action: ACTION, isPosted: true })])
  expect(next.stored[3]).toEqual(['tallies', flush])
  expect(written.at(-1)).toEqual([])
  const third = open({ file })
  await third.unstored.retry()
  expect(third.stored).toEqual([])
})

const ACTION = { atMs: NOON, by: { kind: 'signal', name: 'SIGHUP', address: null }, action: 'config.reloaded', target: null, detail: {} }

test('the file begins with the counts of refused pushes: what does not fit is cut off at its end', async () => {
  const { file, written } = fileOfItems()
  const { unstored, round, fail } = open({ file })
  fail()
  await unstored.write(reload('a problem'))
  unstored.add(() => [REFUSED])
  await round()
  expect(written.at(-1)?.map(({ what }) => what.kind)).toEqual(['refused', 'event'])
})

test('at most two hundred are kept: the oldest goes', async () => {
  const { unstored, stored, now, lines, round, fail } = open()
  fail()
  for (let at = 0; at < 201; at++) await unstored.write(trouble(`${at}`))
  expect([unstored.sinceMs('0'), unstored.sinceMs('1')]).toEqual([null, NOON])
  expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
  now.failure = null
  await round()
  expect(stored).toHaveLength(200)
})

test('what fails for another reason than the store holds up nothing, and is given up', async () => {
  const { unstored, stored, now, lines, round } = open()
  now.failure = new TypeError('a bug')
  await unstored.write(trouble('one'))
  now.failure = null
  await unstored.write(REFUSED)
  expect(stored.map((one) => (one as readonly unknown[])[0])).toEqual(['trouble', 'refused'])
  now.failure = new TypeError('a bug')
  await unstored.write(trouble('two'))
  for (let times = 0; times < 60; times++) await round()
  expect([unstored.sinceMs('two'), lines.filter(({ level }) => level === 'error').length]).toEqual([null, 1])
})

test('a trouble that a restart finds again, before it could be stored, is told and stored once', async () => {
  const { file } = fileOfItems()
  const first = open({ file })
  first.fail()
  await first.unstored.write(trouble('disk full'))
  for (let times = 0; times < 4; times++) await first.round()
  expect(first.events()).toEqual(['disk_full'])
  const next = open({ file })
  next.fail()
  await next.unstored.write(trouble('disk full'))
  await next.unstored.write(reload('another event'))
  for (let times = 0; times < 4; times++) await next.round()
  expect(next.events()).toEqual(['reload_failed'])
  next.now.failure = null
  await next.round()
  expect(next.stored).toEqual([
    ['trouble', expect.objectContaining({ subject: 'disk full', isPosted: true })],
    ['event', expect.objectContaining({ isPosted: true })],
  ])
})

test('a trouble that is dropped is not stored any more', async () => {
  const { unstored, stored, now, round, fail } = open()
  fail()
  await unstored.write(trouble('carrier'))
  unstored.drop('carrier')
  now.failure = null
  await round()
  expect(stored).toEqual([])
})

test('when no relay ran at a full disk is left to the next run that is up, until the store can take it', async () => {
  const disk = fileOfItems()
  const first = open(disk)
  first.fail()
  first.unstored.add(() => [{ kind: 'alive', atMs: NOON - 4000 }])
  await first.round()
  const vain = open({ file: disk.file, nowMs: NOON + 500 })
  vain.fail()
  await vain.round()
  const second = open({ file: disk.file, nowMs: NOON + 1000 })
  second.fail()
  await second.unstored.isUp()
  second.unstored.add(() => [{ kind: 'alive', atMs: NOON + 2000 }])
  await second.round()
  const third = open({ file: disk.file, nowMs: NOON + 5000 })
  await third.round()
  await third.unstored.isUp()
  await third.round()
  expect(third.stored).toEqual([
    ['down', { lastSeenMs: NOON - 4000, startedMs: NOON + 1000 }],
    ['down', { lastSeenMs: NOON + 2000, startedMs: NOON + 5000 }],
  ])
  expect([third.posted, disk.written.at(-1)]).toEqual([[], []])
})
