import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openWriteSide } from '../../../../src/assembly/open-write-side.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../../support/history/builders.ts'
import { observations } from '../../../support/history/observations.ts'
import { incomingOf, strictLog } from '../../../support/history/observed.ts'
import { deliverOptions, recordOptions } from '../../../support/history/policy.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { runsOn } from '../../../support/runner/long-form.ts'
import { engines, withPlace } from '../../../support/store/engines.ts'
import { storedRows } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

/** A push without a location. It is merged with the first sighting of its second that has a location. That is `inLund` until `earlier` arrives. */
const vague = { eventTime: '2026-03-01T10:00:00Z', location: null }
const inLund = { eventTime: '2026-03-01T10:00:00.100Z', location: 'Lund' }
const earlier = { eventTime: '2026-03-01T10:00:00.050Z', location: 'Umeå' }

async function start(engine: Engine) {
  const store = await openStore(NOON, engine)
  return { ...store, ...(await addEndpoint(store.writes, NOON, { backfill: true })) }
}

const clock = { now: () => Date.UTC(2026, 2, 1, 15), monotonic: () => performance.now() }

describe.each(engines)('entries that turn out to be two on $name', (engine) => {
  test('7.1: a push merged with another entry is sent to endpoints when it becomes its own entry', async () => {
    const { push, take, reads } = await start(engine)
    await push(vague)
    await push(inLund)
    expect((await take()).map(({ body }) => String(body))).toEqual([String(pushBody(vague))])
    // Now `vague` is merged with `earlier`, and `inLund` becomes its own entry.
    await push(earlier)
    expect((await reads.findParcel('1001'))?.entries).toHaveLength(2)
    expect((await take()).map(({ body }) => String(body))).toEqual([String(pushBody(inLund))])
    await push(earlier)
    expect(await take()).toEqual([])
  })

  test('7.1: if a polled entry turns out to be two, the one already sent is not sent again', async () => {
    const { poll, take } = await start(engine)
    await poll({ statuses: [{ eventTimestamp: '2026-03-01T10:00:00Z', location: '' }] })
    await poll({ statuses: [{ eventTimestamp: '2026-03-01T10:00:00.100Z', location: 'Lund' }], language: 'sv' })
    expect(await take()).toHaveLength(1)
    await poll({ statuses: [{ eventTimestamp: '2026-03-01T10:00:00.050Z', location: 'Umeå' }], askedAtMs: NOON + 1 })
    const [told, ...more] = await take()
    expect(more).toEqual([])
    expect(JSON.parse(String(told?.body))).toMatchObject({ eventTime: '2026-03-01T10:00:00.100Z', location: 'Lund' })
  })

  test('7.1: if uniting two parcels splits an entry, the split-off entry is sent', async () => {
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

  test('7.1: every endpoint gets the entries that it should get, and no sighting twice', async () => {
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
  })
})
