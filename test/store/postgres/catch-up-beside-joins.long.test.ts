import { expect, test } from 'vitest'
import { createReplayFeed } from '../../../src/flow/delivery/replay-feed.tx.ts'
import { createPostgresWriter } from '../../../src/store/postgres/postgres.ts'
import { postgres } from '../../../src/store/postgres/postgres-engine.ts'
import { createPostgresWriteStore } from '../../../src/store/postgres/postgres-write-store.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../support/history/builders.ts'
import { NOON } from '../../support/runner/constants.ts'
import { gatedWriter } from '../../support/store/gated-writer.ts'
import { openTestPool } from '../../support/store/postgres-pool.ts'
import { storedNumber } from '../../support/store/stored-rows.ts'
import { incomingPush, openStore } from '../../support/store/write-side.ts'

const WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"

async function openWorld() {
  const store = await openStore(NOON, postgres)
  const pool = openTestPool(store.path, 4)
  let second = 0
  const push = (...trackingIds: readonly string[]) => {
    second += 1
    const eventTime = new Date(NOON - 86_400_000 + second * 1000).toISOString()
    return store.record(incomingPush(pushBody({ trackingIds, eventTime }), NOON))
  }
  /** Replays a page of the feed, and does something at its gate number `at`: to the end, or until a lock of the page keeps it from going on. */
  const replayBeside = async (at: number, limit: number, other: () => Promise<unknown>): Promise<boolean> => {
    const doing: Promise<unknown>[] = []
    const writer = gatedWriter(createPostgresWriter(pool, { named: true }), async (nth) => {
      if (nth !== at) return
      let isOver = false
      const done = other().finally(() => {
        isOver = true
      })
      doing.push(done)
      await expect.poll(async () => isOver || (await storedNumber(store.path, WAITING)) > 0, { timeout: 60_000 }).toBe(true)
    })
    await createReplayFeed(createPostgresWriteStore(writer)).replayFeed({ limit, nowMs: NOON })
    await Promise.all(doing)
    return doing.length > 0
  }
  const replayAll = async () => {
    while (!(await store.writes.replayFeed({ limit: 2, nowMs: NOON })).isDone);
  }
  return { ...store, push, replayBeside, replayAll }
}

/** The last page of the feed, or one before it. */
test.each([2, 10])('7.1: an endpoint that catches up, %i at a time, loses no event over a join', { timeout: 120_000 }, async (limit) => {
  const { writes, reads, push, replayBeside, replayAll } = await openWorld()
  for (let gate = 0; ; gate++) {
    const [one, other, third] = [`1${1000 + gate}`, `2${1000 + gate}`, `3${1000 + gate}`]
    const { last } = await reads.readFeed({ after: 0, limit: 1 })
    for (const id of [one, other, third, third]) await push(id)
    const endpoint = await addEndpoint(writes, NOON, { name: `late ${gate}`, from: last + 1 })
    // The parcel of the second event goes into that of the first.
    const wasReached = await replayBeside(gate, limit, () => push(one, other))
    if (!wasReached) await push(one, other)
    await replayAll()
    const { items } = await reads.readFeed({ after: last, limit: 20 })
    const sequences = items.filter(({ kind }) => kind === 'entry').map(({ sequence }) => sequence)
    const got = (await endpoint.take()).map(({ sequence }) => sequence)
    expect([gate, got.toSorted((a, b) => a - b)]).toEqual([gate, sequences])
    await writes.removeEndpoint({ id: endpoint.id, nowMs: NOON })
    if (!wasReached) break
  }
})
