import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openWriteSide } from '../../../../src/assembly/open-write-side.ts'
import { joinDrafts, startBatch } from '../../../../src/core/domain/history/batch-state.ts'
import { noteJoin } from '../../../../src/core/domain/history/merge-observation.ts'
import type { PollObservation, PushObservation } from '../../../../src/core/domain/history/observation.ts'
import { parseAllAnswer } from '../../../../src/core/domain/history/pull-response.ts'
import { type Incoming, recordBatch } from '../../../../src/core/domain/history/recording.ts'
import { loadBatch } from '../../../../src/core/flow/history/record.tx.ts'
import { createCarrierModelKeeper } from '../../../../src/core/flow/polling/carrier-model.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { aPush, pushBody } from '../../../support/history/builders.ts'
import { observations } from '../../../support/history/observations.ts'
import { strictLog } from '../../../support/history/observed.ts'
import { deliverOptions, recordOptions } from '../../../support/history/policy.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { runsOn } from '../../../support/runner/long-form.ts'
import { copyPlace, engines, withPlace } from '../../../support/store/engines.ts'
import { storedNumber, storedRows } from '../../../support/store/stored-rows.ts'
import { incomingPush } from '../../../support/store/write-side.ts'

const clock = { now: () => NOON, monotonic: () => performance.now() }
const open = (engine: Engine, path: string) =>
  openWriteSide({ sqlitePath: path, engine, record: recordOptions, deliver: deliverOptions }, clock, strictLog)
const KEY = ['at_ms', 'time_form', 'content_id', 'listing', 'ordinal']

/** Generates observations of two to eight parcels. No observation names two parcels, but observations of different parcels may be alike. */
const parcels = observations
  .chain((said) => fc.array(fc.subarray([...said], { minLength: 1 }), { minLength: 2, maxLength: 8 }))
  .map((all) =>
    all.flatMap((seen, at) =>
      seen.map(({ observation }): Incoming => {
        const id = `${9001 + at}`
        if (observation.kind === 'poll') return { kind: 'poll', observation: readAgain(observation, id), watch: true }
        return incomingPush(pushBody({ ...pushFieldsOf(observation), trackingIds: [id] }), NOON)
      }),
    ),
  )

/** Makes a poll of `asked` that gets the same answer, but without the other identifiers. */
function readAgain({ body, language, askedAtMs }: PollObservation, asked: string): PollObservation {
  const answer = Buffer.from(JSON.stringify({ ...JSON.parse(String(body)), trackingIds: [] }))
  const reading = parseAllAnswer(answer, { asked, language, contentLanguage: null, askedAtMs })
  if (!reading.ok) throw new Error(reading.reason)
  return reading.observation
}

function pushFieldsOf({ sighting }: PushObservation) {
  const { status, detailedStatus, instant, location } = sighting
  const texts = Object.fromEntries(Object.entries(sighting.texts).map(([language, { detailed }]) => [language, detailed ?? '']))
  return { status, detailedStatus, eventTime: instant.text, location, texts }
}

/** Joins parcels as a push that names them all would, but stores no such push. */
async function joinInto(engine: Engine, path: string, groups: (ids: readonly number[]) => Iterable<readonly number[]>): Promise<void> {
  const store = await engine.openWriteStore(path)
  const ids = (await storedRows<{ id: number }>(path, 'select id from parcel order by id')).map(({ id }) => id)
  const identifiers = await storedRows<{ parcel_id: number; value: string }>(path, 'select parcel_id, value from identifier')
  const names = new Map(identifiers.map((row) => [row.parcel_id, row.value]))
  await store.transaction(async (tx) => {
    for (const group of groups(ids)) {
      const naming = pushBody({ trackingIds: group.map((id) => names.get(id)), eventTime: '2026-03-01T10:00:00.000Z' })
      const pushed = recordBatch([incomingPush(naming, NOON)], NOON)
      const snapshot = { ...(await loadBatch(tx, pushed, null)), model: createCarrierModelKeeper(clock).current() }
      const batch = startBatch(snapshot, NOON)
      const joined = joinDrafts(batch, group, aPush({ trackingIds: ['9001'], eventTime: '2026-03-01T10:00:00.000Z' }), NOON)
      if (joined === null) throw new Error('the parcels do not fit into one')
      noteJoin(batch, joined)
      await tx.applyChanges({ ...batch, recorded: [], failures: [] })
    }
  })
  await store.close()
}

/** Returns all rows that a join moves, sorted, but without the versions of the parcels, which depend on the writes. */
async function contentsOf(path: string): Promise<readonly (readonly string[])[]> {
  const tables = ['parcel', 'identifier', 'sighting', 'answer', 'inbox', 'delivery', 'expected_push']
  const rows = await Promise.all(tables.map((table) => storedRows<object>(path, `select * from ${table}`)))
  return rows.map((of) => of.map((row) => JSON.stringify({ ...row, version: 0 })).sort())
}

/** Engines list the sightings of a parcel in different orders. */
const inOrder = (sightings: unknown) => (Array.isArray(sightings) ? sightings.map((one) => JSON.stringify(one)).sort() : sightings)

describe.each(engines)('a join of many parcels on $name', (engine) => {
  test('1.4: joining parcels at once gives the same as joining them one by one, in any order', async () => {
    const runs = runsOn(engine, 25, 3)
    let shared = 0
    await fc.assert(
      fc.asyncProperty(
        fc.tuple(parcels, fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }))),
        ([all, random]) =>
          withPlace(engine, async (atOnce) => {
            const writes = await open(engine, atOnce)
            const endpoint = await addEndpoint(writes, NOON, { backfill: true })
            for (const [at, one] of all.entries()) {
              await writes.record([one])
              if (at === 3) await endpoint.take()
            }
            await writes.close()
            const oneByOne = await copyPlace(engine, atOnce)
            const count = (place: string, table: string) => storedNumber(place, `select count(*) from ${table}`)
            const sightings = await count(atOnce, 'sighting')

            await joinInto(engine, atOnce, (ids) => [ids])
            await joinInto(engine, oneByOne, function* (ids) {
              const left = [...ids]
              const draw = () => left.splice(Math.floor(Number(random.next().value) * left.length), 1)[0] ?? 0
              while (left.length > 1) {
                const pair = [draw(), draw()].sort((a, b) => a - b)
                yield pair
                left.push(pair[0] ?? 0)
              }
            })
            expect(await contentsOf(atOnce)).toEqual(await contentsOf(oneByOne))
            expect(await count(atOnce, 'audit')).toBe(await count(oneByOne, 'audit'))
            if ((await count(atOnce, 'sighting')) < sightings) shared++
          }),
      ),
      { numRuns: runs, seed: 20261124 },
    )
    expect(shared).toBeGreaterThan(runs / 2)
  })

  test('1.4: the audit trail tells what each joined parcel contained before the join', async () => {
    await fc.assert(
      fc.asyncProperty(parcels, (all) =>
        withPlace(engine, async (path) => {
          const writes = await open(engine, path)
          for (const one of all) await writes.record([one])
          await writes.close()
          const held = Map.groupBy(await storedRows<Record<string, number>>(path, 'select * from sighting'), (row) => row.parcel_id ?? 0)
          const before = [...held].map(
            ([parcelId, rows]) =>
              [
                parcelId,
                rows.map((row) => [KEY.map((name) => row[name]).join('/'), row.asked_at_ms, row.sequence, row.audience, row.learnt_at_ms]),
              ] as const,
          )
          const byValue = 'select parcel_id, value from identifier order by value'
          const identifiers = await storedRows<{ parcel_id: number; value: string }>(path, byValue)
          await joinInto(engine, path, (ids) => [ids])

          const audit = await storedRows<{ detail: string }>(path, 'select detail from audit order by sequence')
          const trail = audit.map(({ detail }) => JSON.parse(detail))
          const told = new Map<number, unknown>(trail.map(({ from, sightings }) => [from.parcelId, sightings]))
          told.set(Math.min(...held.keys()), trail[0]?.stayed)
          for (const [parcelId, rows] of before) expect([parcelId, inOrder(told.get(parcelId))]).toEqual([parcelId, inOrder(rows)])
          for (const { from, identifiers: values } of trail) {
            expect(values).toEqual(identifiers.filter((row) => row.parcel_id === from.parcelId).map(({ value }) => value))
          }
        }),
      ),
      { numRuns: runsOn(engine, 15, 3), seed: 20261124 },
    )
  })
})
