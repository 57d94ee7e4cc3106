import { expect, test } from 'vitest'
import { createReplays } from '../../../src/core/flow/delivery/redeliver.tx.ts'
import type { WriteStore } from '../../../src/core/store/write-store.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../support/history/builders.ts'
import { NOON } from '../../support/runner/constants.ts'
import { createBeside } from '../../support/store/gated-writer.ts'
import { incomingPush, openStore } from '../../support/store/write-side.ts'

async function openWorld() {
  const store = await openStore(NOON, postgres)
  let second = 0
  const push = (...trackingIds: readonly string[]) => {
    second += 1
    const eventTime = new Date(NOON - 86_400_000 + second * 1000).toISOString()
    return store.record(incomingPush(pushBody({ trackingIds, eventTime }), NOON))
  }
  const replayAll = async () => {
    while (!(await store.writes.replayFeed({ limit: 2, nowMs: NOON })).isDone);
  }
  return { ...store, push, beside: createBeside(store.path), replayAll }
}

/** With a limit of 10, the page that the endpoint reads beside the join is the last of the feed. With 2, it is an earlier page. */
test.each([2, 10])('7.1: an endpoint that catches up %i events at a time loses none to a join', async (limit) => {
  const { writes, reads, push, beside, replayAll } = await openWorld()
  for (let gate = 0; ; gate++) {
    const [one, other, third] = [`1${1000 + gate}`, `2${1000 + gate}`, `3${1000 + gate}`]
    const { last } = await reads.readFeed({ after: 0, limit: 1 })
    for (const id of [one, other, third, third]) await push(id)
    const endpoint = await addEndpoint(writes, NOON, { name: `late ${gate}`, from: last + 1 })
    // The join moves the second event into the parcel of the first.
    const replay = (gated: WriteStore) => createReplays(gated).replayFeed({ limit, nowMs: NOON })
    const { wasReached } = await beside(gate, replay, () => push(one, other))
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
