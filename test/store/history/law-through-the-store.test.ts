import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeAll, encodeLatest } from '../../../src/domain/history/pull-response.ts'
import type { Incoming } from '../../../src/domain/history/recording.ts'
import { parsePush } from '../../../src/domain/ingest/parse-push.ts'
import { createReadStore } from '../../../src/store/read-store.ts'
import { openSqliteReader } from '../../../src/store/sqlite/sqlite.ts'
import { openWriteSide } from '../../../src/wiring/write-side.ts'
import { answers, recordAll } from '../../support/model.ts'
import { copiesAroundAnother, everyOrder, observations, rearranged, type Seen } from '../../support/observations.ts'
import { deliverOptions, recordOptions } from '../../support/policy.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const IDENTIFIERS = ['1001', '1002', '2001', '2002', 'AB123456789SE', 'CD123456789SE']
const clock = { now: () => Date.UTC(2026, 2, 1, 15), monotonic: () => performance.now() }
const log = {
  error: (fields: object) => {
    throw new Error(`unexpected: ${JSON.stringify(fields, Object.getOwnPropertyNames(new Error()))}`)
  },
}

function incoming({ observation, body }: Seen): Incoming {
  if (observation.kind === 'poll') return { kind: 'poll', observation, watch: true }
  return parsePush({ body, contentEncoding: null, receivedAtMs: clock.now(), keyIndex: 0 })
}

/** Every answer of every identifier after recording batch by batch into a file of its own. */
async function served(path: string, batches: readonly (readonly Seen[])[]): Promise<Readonly<Record<string, string>>> {
  const writes = await openWriteSide({ sqlitePath: path, record: recordOptions, deliver: deliverOptions }, clock, log)
  for (const batch of batches) await writes.record(batch.map(incoming))
  await writes.close()
  const reads = createReadStore(openSqliteReader(path))
  const answers: Record<string, string> = {}
  for (const id of IDENTIFIERS) {
    const view = await reads.findParcel(id)
    if (view === null) continue
    for (const language of ['en', 'sv']) {
      answers[`${id}/all?${language}`] = encodeAll(view, [language, 'en', 'sv']).body
      answers[`${id}/latest?${language}`] = encodeLatest(view, [language, 'en', 'sv'])?.body ?? 'none'
    }
  }
  await reads.close()
  return answers
}

function inBatches(all: readonly Seen[], size: number): readonly (readonly Seen[])[] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, at * size + size))
}

test('gives the bytes of the model through the store, whatever the order, the duplicates and the batches', async () => {
  const folder = temporaryFolder()
  let file = 0
  await fc.assert(
    fc.asyncProperty(
      observations.chain((all) => fc.tuple(fc.constant(all), rearranged(all))),
      fc.integer({ min: 1, max: 5 }),
      async ([all, again], size) => {
        const one = await served(join(folder, `${file++}.db`), [all])
        expect(one).toEqual(answers(recordAll(all)))
        expect(await served(join(folder, `${file++}.db`), inBatches(again, size))).toEqual(one)
      },
    ),
    { numRuns: 250, seed: 20261121 },
  )
}, 120_000)

test('copies of a listing, and another that could join between them, give the same bytes through the store in every order, however repeated', async () => {
  const folder = temporaryFolder()
  const expected = answers(recordAll(copiesAroundAnother))
  for (const [at, order] of everyOrder(copiesAroundAnother).entries()) {
    const once = inBatches(order, 1)
    const again = inBatches([...order, ...order.toReversed()], 1 + (at % 4))
    expect(await served(join(folder, `${at}.db`), once)).toEqual(expected)
    expect(await served(join(folder, `${at}-again.db`), again)).toEqual(expected)
  }
}, 60_000)
