import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import type { Session } from '../../../src/core/store/engine.ts'
import { createParcelVersions, QUERIES_AT_ONCE } from '../../../src/server/postgres/history/postgres-parcels.ts'

interface Query {
  readonly ids: readonly number[]
  answer(versions: Readonly<Record<number, number>>): void
  fail(error: Error): void
}

/** Acts as a server that answers when the test says so. */
function createWorld() {
  const queries: Query[] = []
  const session: Pick<Session, 'all'> = {
    all(_statement, params) {
      const { promise, resolve, reject } = Promise.withResolvers<readonly never[]>()
      queries.push({
        ids: Object.values(params).flatMap((value) => (Array.isArray(value) ? value.map(Number) : [])),
        // Answers with the rows of the only statement that is used.
        answer: (versions) => resolve(Object.entries(versions).map(([id, version]) => ({ id: Number(id), version }) as never)),
        fail: reject,
      })
      return promise
    },
  }
  return { queries, versionOf: createParcelVersions(session), ids: () => queries.map(({ ids }) => ids) }
}

test('the requests of one turn of the event loop share one query, with each parcel once', async () => {
  const { queries, versionOf, ids } = createWorld()
  const asked = [versionOf(1), versionOf(2), versionOf(1), versionOf(3)]
  await nextTurn()
  expect(ids()).toEqual([[1, 2, 3]])
  queries[0]?.answer({ 1: 10, 2: 20 })
  expect(await Promise.all(asked)).toEqual([10, 20, 10, null])
})

test('a request after a query was sent does not join it, even for the same parcel', async () => {
  const { queries, versionOf, ids } = createWorld()
  const before = versionOf(1)
  await nextTurn()
  const after = versionOf(1)
  queries[0]?.answer({ 1: 10 })
  await nextTurn()
  expect(ids()).toEqual([[1], [1]])
  queries[1]?.answer({ 1: 11 })
  expect([await before, await after]).toEqual([10, 11])
})

test(`while ${QUERIES_AT_ONCE} queries run, requests wait; the next one takes up to 256 parcels`, async () => {
  const { queries, versionOf, ids } = createWorld()
  const asked: Promise<number | null>[] = []
  for (let id = 1; id <= QUERIES_AT_ONCE; id++) {
    asked.push(versionOf(id))
    await nextTurn()
  }
  for (let id = 1001; id <= 1300; id++) {
    asked.push(versionOf(id))
    if (id % 50 === 0) await nextTurn()
  }
  expect(ids().map(({ length }) => length)).toEqual([1, 1])
  for (const query of queries) query.answer({})
  await vi.waitUntil(() => queries.length === 4)
  expect(ids().map(({ length }) => length)).toEqual([1, 1, 256, 44])
  for (const query of queries) query.answer({})
  expect(new Set(await Promise.all(asked))).toEqual(new Set([null]))
})

test('a failed query fails its own requests and no others', async () => {
  const { queries, versionOf } = createWorld()
  const first = versionOf(1)
  await nextTurn()
  const second = versionOf(2)
  queries[0]?.fail(new Error('connection lost'))
  await expect(first).rejects.toThrow('connection lost')
  await vi.waitUntil(() => queries.length === 2)
  queries[1]?.answer({ 2: 5 })
  expect(await second).toBe(5)
})
