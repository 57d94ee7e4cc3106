import { describe, expect, test } from 'vitest'
import { ANSWERS_MAX, encodeAll } from '../../../../src/core/domain/history/pull-response.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { readBack } from '../../../support/history/builders.ts'
import { recordOptions } from '../../../support/history/policy.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { storedNumber, storedRows } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

const POLLS = 40
const times = ['11:00:00', '10:00:00', '10:00:00', '09:00:00'].map((time) => `2026-03-01T${time}Z`)

async function rowsOf(path: string): Promise<Readonly<Record<string, number>>> {
  const count = (table: string) => storedNumber(path, `select count(*) from ${table}`)
  return {
    sightings: await count('sighting'),
    contents: await count('content'),
    answers: await count('answer'),
    deliveries: await count('delivery'),
  }
}

async function feedOf(path: string): Promise<readonly (readonly [number, number])[]> {
  const feed = await storedRows<{ kind: number; entry: number }>(path, 'select kind, entry from feed order by sequence')
  return feed.map(({ kind, entry }) => [kind, entry])
}

/** Acts as a carrier whose answers contain an age, which differs at every poll. */
async function start(engine: Engine) {
  const store = await openStore(NOON, engine)
  const pollOnce = (ageSeconds: number) =>
    store.poll({
      askedAtMs: store.pass(1000),
      statuses: times.map((eventTimestamp, at) => ({ eventTimestamp, ageSeconds: ageSeconds + at })),
      extra: { ageSeconds },
    })
  const served = async () => {
    const view = await store.reads.findParcel('1001')
    if (view === null) throw new Error('the parcel is unknown')
    return readBack(encodeAll(view, ['en']).body)
  }
  return { ...store, pollOnce, served }
}

describe.each(engines)('members that change at every poll on $name', (engine) => {
  test('2: if only a member changes at every poll, the stored rows do not increase', async () => {
    const { pollOnce, served, path } = await start(engine)
    for (let age = 1; age <= ANSWERS_MAX; age++) await pollOnce(age)
    const before = await rowsOf(path)
    expect(before).toEqual({ sightings: times.length, contents: 1, answers: ANSWERS_MAX, deliveries: 0 })
    for (let age = 1; age <= POLLS; age++) await pollOnce(100 * age)
    expect(await rowsOf(path)).toEqual(before)
    const ages = times.map((eventTimestamp, at) => ({ eventTimestamp, ageSeconds: 100 * POLLS + at }))
    expect(await served()).toMatchObject({ statuses: ages, ageSeconds: 100 * POLLS })
  })

  test('2.4: of listings that differ only in unknown members, the one asked for last is kept', async () => {
    const { poll, served } = await start(engine)
    const listed = (...weights: readonly number[]) => weights.map((weight) => ({ eventTimestamp: times[0] ?? '', weight }))
    await poll({ askedAtMs: NOON + 2, statuses: listed(3, 4) })
    await poll({ askedAtMs: NOON + 1, statuses: listed(9, 9) })
    expect(await served()).toMatchObject({ statuses: [{ weight: 3 }, { weight: 4 }] })
    // Of two listings that were asked for at the same time, one is kept whole.
    await poll({ askedAtMs: NOON + 2, statuses: listed(2, 5) })
    await poll({ askedAtMs: NOON + 2, statuses: listed(4, 1) })
    expect(await served()).toMatchObject({ statuses: [{ weight: 2 }, { weight: 5 }] })
  })

  test('if only unknown members change, the feed gets updates of the same entries', async () => {
    const { pollOnce, path } = await start(engine)
    await pollOnce(1)
    const first = await feedOf(path)
    const entries = new Set(first.map(([, entry]) => entry))
    expect(first.map(([kind]) => kind)).toEqual(times.map(() => 0))
    await pollOnce(2)
    const told = (await feedOf(path)).slice(times.length)
    expect(told.map(([kind]) => kind)).toEqual(times.map(() => 1))
    expect(new Set(told.map(([, entry]) => entry))).toEqual(entries)
  })

  test('6.6: backfill is no missed push even after more polls, and a push makes it relayed', async () => {
    const { pollOnce, push, pass, writes } = await start(engine)
    const { take } = await addEndpoint(writes, NOON)
    for (let age = 1; age <= 3; age++) await pollOnce(age)
    expect(await take()).toEqual([])
    expect(await writes.settleMissedPushes(pass(recordOptions.missedPushGraceMs + 1))).toEqual([])
    await push({ eventTime: times[3]?.replace('Z', '.000Z') ?? '' })
    expect((await take()).map(({ body }) => String(body))).toEqual([expect.stringContaining('09:00:00')])
    await pollOnce(4)
    await push({ eventTime: times[3]?.replace('Z', '.000Z') ?? '', texts: { en: 'Again' } })
    expect(await take()).toEqual([])
  })
})
