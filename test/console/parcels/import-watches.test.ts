import { expect, test } from 'vitest'
import { ATOMIC_MAX, createImportWatches } from '../../../src/console/parcels/parcel-commands.ts'
import { AppError } from '../../../src/core/domain/errors.ts'
import { OPERATOR } from '../../support/relay/operator.ts'

/** Opens a list import on a store that accepts this many transactions, and then fails as if the disk were full. */
function openList(transactions: number) {
  const watched = new Set<string>()
  const sizes: number[] = []
  let left = transactions
  const watchList = createImportWatches({
    told: () => undefined,
    write: {
      async watchMany({ identifiers }) {
        if (left-- <= 0) throw new Error('SQLITE_FULL')
        sizes.push(identifiers.length)
        return identifiers.map((identifier) => {
          const created = !watched.has(identifier)
          watched.add(identifier)
          return { parcelId: watched.size, created }
        })
      },
    },
    clock: { now: () => 0, monotonic: () => 0 },
  })
  const send = (lines: readonly string[], atomic: boolean) =>
    watchList({
      format: 'csv',
      column: null,
      atomic,
      by: OPERATOR,
      lines: (async function* () {
        yield* lines
      })(),
    })
  const recover = () => {
    left = Number.POSITIVE_INFINITY
  }
  return { send, watched, sizes, recover }
}

const list = (count: number) => Array.from({ length: count }, (_, at) => `WL${String(at).padStart(6, '0')}`)
const failureOf = async (sent: Promise<unknown>) => {
  const error = await sent.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof AppError)) throw new Error('the list did not fail with an error of the relay')
  return error
}

test('an atomic list of up to two thousand lines is one transaction', async () => {
  const good = openList(1)
  expect(await good.send(list(ATOMIC_MAX), true)).toMatchObject({ watched: ATOMIC_MAX, created: ATOMIC_MAX })
  expect(good.sizes).toEqual([ATOMIC_MAX])
  const failing = openList(0)
  expect(await failureOf(failing.send(list(ATOMIC_MAX), true))).toMatchObject({ code: 'storage_unavailable', facts: { watched: 0 } })
})

test.each([true, false])('a longer list (atomic: %s) that fails says how many lines are watched', async (atomic) => {
  const { send, watched, sizes, recover } = openList(3)
  const error = await failureOf(send(list(4321), atomic))
  expect(error).toMatchObject({ code: 'storage_unavailable', facts: { watched: 1500 } })
  expect([...watched]).toEqual(list(1500))
  expect(Math.max(...sizes)).toBe(500)
  recover()
  expect(await send(list(4321), atomic)).toMatchObject({ watched: 4321, created: 2821 })
  expect(watched.size).toBe(4321)
})

test('an atomic list with a bad line at its end starts no transaction', async () => {
  const { send, sizes } = openList(9)
  expect(await failureOf(send([...list(3000), '?'], true))).toMatchObject({ code: 'bad_request', facts: { watched: 0, failed: 1 } })
  expect(sizes).toEqual([])
})

test('a list is read to its end before the store is used', async () => {
  const events: string[] = []
  const watchList = createImportWatches({
    told: () => undefined,
    write: {
      watchMany: async ({ identifiers }) => {
        events.push('written')
        return identifiers.map((_, parcelId) => ({ parcelId, created: true }))
      },
    },
    clock: { now: () => 0, monotonic: () => 0 },
  })
  const lines = async function* () {
    yield* list(1200)
    events.push('read')
  }
  await watchList({ format: 'csv', column: null, atomic: false, by: OPERATOR, lines: lines() })
  expect(events).toEqual(['read', 'written', 'written', 'written'])
})
