import { expect, test } from 'vitest'
import type { FeedItem } from '../../../../src/core/domain/delivery/feed-entry.ts'
import { NO_CONTEXT } from '../../../../src/core/domain/history/order-context.ts'
import { createFeedTail, createFollowFeed, type FeedPage } from '../../../../src/core/flow/delivery/feed-tail.ts'
import { createFeedSignal, createTickLimit } from '../../../../src/core/runtime/feed-signal.ts'

const NEVER = new AbortController().signal

function itemOf(sequence: number, trackingIds: readonly string[] = ['1001']): FeedItem {
  const parcel = { parcelId: 1, identifiers: ['1001'], entries: [], trackingIds, distributionType: 'Mailbox', extra: [], order: NO_CONTEXT }
  return { sequence, kind: 'update', parcel, entry: null, joined: null, breach: null }
}

/** Opens a feed in memory. `counts` tells how often it was read, and how many events it returned. */
function createWorld(options: { readonly trackingIds?: readonly string[] } = {}) {
  const committed: number[] = []
  const counts = { readings: 0, derived: 0 }
  let prunedTo = 0
  const readFeed = async ({ after, limit }: { after: number; limit: number }) => {
    counts.readings += 1
    const found = committed.filter((sequence) => sequence > after).slice(0, limit)
    counts.derived += found.length
    const items = found.map((sequence) => itemOf(sequence, options.trackingIds))
    return { items, next: found.at(-1) ?? after, ended: found.length < limit, prunedTo, last: committed.at(-1) ?? 0 }
  }
  const tail = createFeedTail({ reads: { readFeed }, yieldToOthers: () => new Promise((resolve) => setImmediate(resolve)) })
  const signal = createFeedSignal()
  const { follow } = createFollowFeed({ tail, signal, clock: { monotonic: () => performance.now() }, spread: createTickLimit(25) })
  const commit = (count: number) => {
    for (let nth = 0; nth < count; nth++) committed.push((committed.at(-1) ?? 0) + 2)
    signal.tell()
  }
  /** Follows the feed up to the sequence `until()`. */
  const readAll = async (until: () => number, limit = 100, after = 0): Promise<readonly number[]> => {
    const seen: number[] = []
    const read = follow({ after, limit, charsMax: 1_000_000, inStep: limit === 500, left: NEVER })
    for (let next = after; next < until(); ) {
      const page = await read(5000)
      seen.push(...page.events.map(({ sequence }) => sequence))
      next = page.next
    }
    return seen
  }
  const page = (after: number, limit = 100, charsMax = 1_000_000): Promise<FeedPage> => tail.read({ after, limit, charsMax, inStep: false })
  const prune = (to: number) => {
    prunedTo = to
  }
  const replace = (sequences: readonly number[]) => {
    committed.splice(0, committed.length, ...sequences)
  }
  return { committed, counts, commit, readAll, page, prune, replace, forget: tail.forget }
}

test('few events are read from the store twice, however many readers follow', async () => {
  const world = createWorld()
  world.commit(1)
  const last = 2 * 301
  // The readers have different page sizes, so that no two stay at the same position for long.
  const followers = Array.from({ length: 100 }, (_, nth) => world.readAll(() => last, 7 + nth))
  for (let nth = 0; nth < 30; nth++) {
    await new Promise((resolve) => setImmediate(resolve))
    world.commit(10)
  }
  for (const seen of await Promise.all(followers)) expect(seen).toEqual(world.committed)
  // Without shared pages, 30,100 events would be read.
  expect(world.counts.derived).toBeLessThan(2 * world.committed.length)
})

test('readers far behind read their own pages up to the end, and get each event once', async () => {
  const world = createWorld()
  world.commit(3000)
  const live = world.readAll(() => 2 * 3500, 100, 2 * 3000)
  const behind = Array.from({ length: 20 }, (_, nth) => world.readAll(() => 2 * 3500, 50 + nth, 2 * 100 * nth))
  for (let nth = 0; nth < 50; nth++) {
    await new Promise((resolve) => setImmediate(resolve))
    world.commit(10)
  }
  expect(await live).toEqual(world.committed.slice(3000))
  for (const [nth, seen] of (await Promise.all(behind)).entries()) expect(seen).toEqual(world.committed.slice(100 * nth))
})

test('streams that resume at different positions soon read the same pages', async () => {
  const world = createWorld()
  world.commit(3000)
  const slower = Array.from({ length: 50 }, async (_, nth) => {
    for (let turn = 0; turn < nth % 7; turn++) await new Promise((resolve) => setImmediate(resolve))
    return await world.readAll(() => 2 * 3000, 500, 2 * nth)
  })
  for (const [nth, seen] of (await Promise.all(slower)).entries()) expect(seen).toEqual(world.committed.slice(nth))
  // Without shared pages, 150,000 events would be read. Each stream reads its own first page up to a common step, and shares the later pages.
  expect(world.counts.derived).toBeLessThan(3 * 3000)
})

test('a reader gets every event committed before its request, even with other readers present', async () => {
  const world = createWorld()
  world.commit(1)
  await world.page(0)
  for (let nth = 0; nth < 50; nth++) {
    const others = [world.page(world.committed.at(-1) ?? 0), world.page(0, 5), world.page(2)]
    world.commit(1)
    expect((await world.page(world.committed.at(-2) ?? 0)).events.map(({ sequence }) => sequence)).toEqual(world.committed.slice(-1))
    await Promise.all(others)
  }
})

test('readers at the same position share one page', async () => {
  const world = createWorld()
  world.commit(10)
  await world.page(0)
  const [one, other] = await Promise.all([world.page(4), world.page(4)])
  expect(one).toBe(other)
  expect(one.events.map(({ sequence }) => sequence)).toEqual([6, 8, 10, 12, 14, 16, 18, 20])
})

test('the cached end of the feed is bounded, and older events are read from the store', async () => {
  const world = createWorld({ trackingIds: Array.from({ length: 5000 }, () => 'x'.repeat(36)) })
  for (let nth = 1; nth <= 100; nth++) {
    world.commit(1)
    await world.page(2 * nth - 2)
  }
  const { derived } = world.counts
  expect((await world.page(190)).events).toHaveLength(5)
  expect(world.counts.derived).toBe(derived)
  expect((await world.page(0, 5)).events).toHaveLength(5)
  expect(world.counts.derived).toBe(derived + 5)
})

test('few events are read from the store twice when they fill several pages', async () => {
  const world = createWorld({ trackingIds: Array.from({ length: 500 }, () => 'x'.repeat(36)) })
  world.commit(100)
  for (let after = 0; after < 200; ) after = (await world.page(after, 100, 64 * 1024)).next
  expect(world.counts.derived).toBeLessThan(200)
})

test('a page ends with the event that exceeds its size', async () => {
  const world = createWorld()
  world.commit(10)
  await world.page(0)
  expect(await world.page(0, 100, 1)).toMatchObject({ events: [{ sequence: 2 }], next: 2 })
  expect(await world.page(0, 3)).toMatchObject({ events: [{ sequence: 2 }, { sequence: 4 }, { sequence: 6 }], next: 6 })
})

test('the cache drops events that retention removes, and a position after the end is refused', async () => {
  const world = createWorld()
  world.commit(10)
  await world.page(0)
  world.prune(8)
  await expect(world.page(4)).rejects.toMatchObject({ code: 'feed_gone', facts: { oldestSequence: 9 } })
  expect((await world.page(8)).events).toHaveLength(6)
  await expect(world.page(21)).rejects.toMatchObject({ code: 'feed_rewound', facts: { lastSequence: 20 } })
})

test('S18: after the database has lost commits, all cached pages are read again', async () => {
  const world = createWorld()
  world.commit(300)
  const sequencesAfter = async (after: number) => (await world.page(after, 10)).events.map(({ sequence }) => sequence)
  const before = [await sequencesAfter(20), await sequencesAfter(590)]
  const others = Array.from({ length: 700 }, (_, nth) => nth + 1)
  world.replace(others)
  // Without `forget`, cached pages are kept.
  expect([await sequencesAfter(20), (await sequencesAfter(590)).slice(0, 5)]).toEqual(before)
  world.forget()
  expect([await sequencesAfter(20), await sequencesAfter(590)]).toEqual([others.slice(20, 30), others.slice(590, 600)])
})
