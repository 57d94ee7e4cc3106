import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Engine } from '../../../src/store/contract.ts'
import { openWriteSide } from '../../../src/wiring/write-side.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../support/history/builders.ts'
import { observations } from '../../support/history/observations.ts'
import { incomingOf, strictLog } from '../../support/history/observed.ts'
import { deliverOptions, recordOptions } from '../../support/history/policy.ts'
import { NOON } from '../../support/runner/constants.ts'
import { runsOn } from '../../support/runner/long-form.ts'
import { engines, withPlace } from '../../support/store/engines.ts'
import { storedRows } from '../../support/store/stored-rows.ts'
import { openStore } from '../../support/store/write-side.ts'

/** Said without a place, it is taken for what happened at the first place named: until a second at that very time shows otherwise. */
const vague = { eventTime: '2026-03-01T10:00:00Z', location: null }
const inLund = { eventTime: '2026-03-01T10:00:00.100Z', location: 'Lund' }
const earlier = { eventTime: '2026-03-01T10:00:00.050Z', location: 'Umeå' }

async function start(engine: Engine) {
  const store = await openStore(NOON, engine)
  return { ...store, ...(await addEndpoint(store.writes, NOON, { backfill: true })) }
}

const clock = { now: () => Date.UTC(2026, 2, 1, 15), monotonic: () => performance.now() }

describe.each(engines)('entries that prove to be two on $name', (engine) => {
  test('7.1: a push taken for part of another entry is relayed once it proves its own', async () => {
    const { push, take, reads } = await start(engine)
    await push(vague)
    await push(inLund)
    expect((await take()).map(({ body }) => String(body))).toEqual([String(pushBody(vague))])
    // Comes before Lund in the order of founding, so what was vague is of this one now, and Lund is on its own.
    await push(earlier)
    expect((await reads.findParcel('1001'))?.entries).toHaveLength(2)
    expect((await take()).map(({ body }) => String(body))).toEqual([String(pushBody(inLund))])
    await push(earlier)
    expect(await take()).toEqual([])
  })

  test('7.1: if a polled entry proves to be two, the one that was relayed is not relayed again', async () => {
    const { poll, take } = await start(engine)
    await poll({ statuses: [{ eventTimestamp: '2026-03-01T10:00:00Z', location: '' }] })
    await poll({ statuses: [{ eventTimestamp: '2026-03-01T10:00:00.100Z', location: 'Lund' }], language: 'sv' })
    expect(await take()).toHaveLength(1)
    await poll({ statuses: [{ eventTimestamp: '2026-03-01T10:00:00.050Z', location: 'Umeå' }], askedAtMs: NOON + 1 })
    const [told, ...more] = await take()
    expect(more).toEqual([])
    expect(JSON.parse(String(told?.body))).toMatchObject({ eventTime: '2026-03-01T10:00:00.100Z', location: 'Lund' })
  })

  test('7.1: entries that a join of parcels sets apart are relayed', async () => {
    const { push, take } = await start(engine)
    await push({ ...vague, trackingIds: ['1001'] })
    await push({ ...inLund, trackingIds: ['1001'] })
    await push({ ...earlier, trackingIds: ['2002'] })
    expect(await take()).toHaveLength(2)
    await push({ eventTime: '2026-03-01T11:00:00Z', trackingIds: ['1001', '2002'] })
    expect((await take()).map(({ body }) => String(body)).sort()).toEqual(
      [pushBody({ ...inLund, trackingIds: ['1001'] }), pushBody({ eventTime: '2026-03-01T11:00:00Z', trackingIds: ['1001', '2002'] })]
        .map(String)
        .sort(),
    )
  })

  test('7.1: every entry is relayed to whom it is owed, and no sighting twice', async () => {
    await fc.assert(
      fc.asyncProperty(observations, (all) =>
        withPlace(engine, async (path) => {
          const writes = await openWriteSide({ sqlitePath: path, engine, record: recordOptions, deliver: deliverOptions }, clock, strictLog)
          const backfill = await addEndpoint(writes, clock.now(), { backfill: true })
          const plain = await addEndpoint(writes, clock.now(), { name: 'plain' })
          for (const one of all) await writes.record([incomingOf(one, clock.now())])
          const taken = [await backfill.take(), await plain.take()].map((deliveries) => new Set(deliveries.map(({ sequence }) => sequence)))
          await writes.close()
          const inFeed = 'select sequence, entry from feed where payload_ref is not null'
          const told = await storedRows<{ sequence: number; entry: number }>(path, inFeed)
          const sightings = taken.map((by) => told.filter(({ sequence }) => by.has(sequence)).map(({ entry }) => entry))
          for (const of of sightings) expect(new Set(of).size).toBe(of.length)
          const reads = engine.openReadStore(path)
          for (const identifier of ['1001', '1002', '2001', '2002']) {
            for (const { members } of (await reads.findParcel(identifier))?.entries ?? []) {
              const isInAudience = sightings.map((of) => members.some(({ sequence }) => of.includes(sequence)))
              const isPushed = members.some(({ sighting }) => sighting.source === 'push')
              expect(isInAudience).toEqual([true, isPushed || isInAudience[1]])
            }
          }
          await reads.close()
        }),
      ),
      { numRuns: runsOn(engine, 150, 6), seed: 20261122 },
    )
  }, 600_000)
})
