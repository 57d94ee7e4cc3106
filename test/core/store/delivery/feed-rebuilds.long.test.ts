import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openWriteSide } from '../../../../src/assembly/open-write-side.ts'
import { encodeAll } from '../../../../src/core/domain/history/pull-response.ts'
import type { Incoming } from '../../../../src/core/domain/history/recording.ts'
import { parsePush } from '../../../../src/core/domain/ingest/parse-push.ts'
import { createFeedTail, createFollowFeed } from '../../../../src/core/flow/delivery/feed-tail.ts'
import { createFeedSignal } from '../../../../src/core/runtime/feed-signal.ts'
import type { ReadSide } from '../../../../src/core/store/read-store.ts'
import { createFeedConsumer, type FeedConsumer } from '../../../support/delivery/feed-consumer.ts'
import { observations, rearranged, type Seen } from '../../../support/history/observations.ts'
import { deliverOptions, recordOptions } from '../../../support/history/policy.ts'
import { runsOn } from '../../../support/runner/long-form.ts'
import { engines, withPlace } from '../../../support/store/engines.ts'

const IDENTIFIERS = ['1001', '1002', '2001', '2002', 'AB123456789SE', 'CD123456789SE']
const clock = { now: () => Date.UTC(2026, 2, 1, 15), monotonic: () => performance.now() }
const log = { error: (fields: object) => expect.unreachable(JSON.stringify(fields)) }

function incoming({ observation, body }: Seen): Incoming {
  if (observation.kind === 'poll') return { kind: 'poll', observation, watch: true }
  return parsePush({ body, contentEncoding: null, receivedAtMs: clock.now(), keyIndex: 0 })
}

function createReader(reads: ReadSide) {
  const tail = createFeedTail({ reads, yieldToOthers: () => Promise.resolve() })
  const { follow } = createFollowFeed({ tail, signal: createFeedSignal(), clock, spread: async () => {} })
  return async (consumer: FeedConsumer, limit: number) => {
    for (;;) {
      const left = new AbortController().signal
      const { events, next } = await follow({ after: consumer.next(), limit, charsMax: 10_000, inStep: limit > 3, left })(0)
      if (!consumer.take(`{"events":[${events.map(({ json }) => json).join(',')}],"next":${next}}`)) return
    }
  }
}

async function servedBy(reads: ReadSide, languages: readonly string[]): Promise<Readonly<Record<string, string | undefined>>> {
  const served = IDENTIFIERS.map(async (identifier) => {
    const view = await reads.findParcel(identifier)
    return [identifier, view === null ? undefined : encodeAll(view, languages).body] as const
  })
  return Object.fromEntries(await Promise.all(served))
}

const rebuiltBy = (consumer: FeedConsumer, languages: readonly string[]) =>
  Object.fromEntries(IDENTIFIERS.map((identifier) => [identifier, consumer.all(identifier, languages)]))

describe.each(engines)('the feed on $name', (engine) => {
  test('consumers that read from 0, at once or in pieces, rebuild every history to the byte', async () => {
    const kinds = new Map<string, number>()
    const runs = runsOn(engine, 80, 5)
    await fc.assert(
      fc.asyncProperty(
        observations.chain(rearranged),
        fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 20, maxLength: 20 }),
        (all, pieces) =>
          withPlace(engine, async (path) => {
            const writes = await openWriteSide({ sqlitePath: path, engine, record: recordOptions, deliver: deliverOptions }, clock, log)
            const reads = engine.openReadStore(path)
            const read = createReader(reads)
            const [late, along] = [createFeedConsumer(), createFeedConsumer()]
            for (const [nth, one] of all.entries()) {
              await writes.record([incoming(one)])
              const limit = pieces[nth % pieces.length] ?? 0
              if (limit === 0) continue
              await read(along, limit)
              expect(rebuiltBy(along, ['en', 'sv'])).toEqual(await servedBy(reads, ['en', 'sv']))
            }
            await read(along, 2)
            await read(late, 3)
            for (const languages of [
              ['en', 'sv'],
              ['sv', 'en'],
            ]) {
              const served = await servedBy(reads, languages)
              expect(rebuiltBy(late, languages)).toEqual(served)
              expect(rebuiltBy(along, languages)).toEqual(served)
            }
            for (const [kind, count] of late.kinds) kinds.set(kind, (kinds.get(kind) ?? 0) + count)
            await reads.close()
            await writes.close()
          }),
      ),
      { numRuns: runs, seed: 20261121 },
    )
    // The events were varied enough that every kind occurred.
    for (const kind of runs < 80 ? ['entry', 'update'] : ['entry', 'update', 'united', 'join'])
      expect([kind, (kinds.get(kind) ?? 0) > 0]).toEqual([kind, true])
  })
})
