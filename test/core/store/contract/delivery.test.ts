import { describe, expect, test } from 'vitest'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../../support/history/builders.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

const timeOf = (at: number) => new Date(NOON + at * 1000).toISOString()
const claim = { settled: [], inFlight: {}, allowance: {}, claimsMax: 100, nowMs: NOON }

describe.each(engines)('deliveries on $name', (engine) => {
  async function openSubscribed() {
    const store = await openStore(NOON, engine)
    const endpoint = await addEndpoint(store.writes, NOON)
    const pushes = (ids: readonly string[], entries: number) =>
      ids.flatMap((id) =>
        Array.from({ length: entries }, (_, at) => incomingPush(pushBody({ trackingIds: [id], eventTime: timeOf(at) }), NOON)),
      )
    return { ...store, endpoint, pushes }
  }

  test('only the first of the waiting deliveries of a parcel is claimed', async () => {
    const { writes, record, pushes } = await openSubscribed()
    await record(...pushes(['1001', '1002'], 3))
    const first = await writes.dispatchRound(claim)
    expect(first.claimed).toHaveLength(2)
    expect(new Set(first.claimed.map(({ parcelId }) => parcelId)).size).toBe(2)
  })

  test('7.2, 7.3: an endpoint gets every event once and in order during concurrent recording', async () => {
    const { record, endpoint, pushes } = await openSubscribed()
    const ids = Array.from({ length: 20 }, (_, at) => String(3000 + at))
    const taken: { readonly parcelId: number; readonly sequence: number }[] = []
    for (const push of pushes(ids, 5)) {
      const [, some] = await Promise.all([record(push), endpoint.take()])
      taken.push(...some)
    }
    taken.push(...(await endpoint.take()))
    expect(taken).toHaveLength(100)
    for (const ofParcel of Map.groupBy(taken, ({ parcelId }) => parcelId).values()) {
      const sequences = ofParcel.map(({ sequence }) => sequence)
      expect(sequences).toEqual([...new Set(sequences)].toSorted((a, b) => a - b))
      expect(sequences).toHaveLength(5)
    }
  })

  test('a page of the feed names the last sequence of the whole feed', async () => {
    const { record, pushes, reads } = await openSubscribed()
    expect(await reads.readFeed({ after: 0, limit: 10 })).toMatchObject({ items: [], last: 0 })
    await record(...pushes(['1001'], 3))
    expect(await reads.readFeed({ after: 0, limit: 2 })).toMatchObject({ items: [{ sequence: 1 }, { sequence: 2 }], next: 2, last: 3 })
    expect(await reads.readFeed({ after: 3, limit: 2 })).toMatchObject({ items: [], last: 3 })
  })

  test('the time for which an endpoint has failed is stored in whole milliseconds', async () => {
    const { writes, record, reads, pushes, pass, setClock } = await openSubscribed()
    await record(...pushes(['1001'], 1))
    let [delivery] = (await writes.dispatchRound(claim)).claimed
    for (const minute of [1, 2, 3]) {
      if (delivery === undefined) throw new Error('nothing was claimed')
      const { body: _body, previousSequence: _previous, ...claimed } = delivery
      pass(60_000.375)
      const nowMs = NOON + minute * 3_600_000
      setClock(nowMs)
      const result = { kind: 'rejected', status: 500, durationMs: 1.5, retryAfterMs: null, answerStart: new Uint8Array() } as const
      const settled = [{ ...claimed, result, atMs: nowMs, random: 0.3 }]
      await writes.dispatchRound({ ...claim, settled, claimsMax: 0, nowMs })
      ;[delivery] = (await writes.dispatchRound({ ...claim, nowMs: nowMs + 3_600_000 })).claimed
    }
    expect((await reads.listEndpoints()).map(({ health }) => health.failedForMs)).toEqual([120_000])
  })

  test('an endpoint that is added while pushes are recorded gets each later event once', async () => {
    const { writes, record, pushes } = await openSubscribed()
    for (let race = 0; race < 20; race++) {
      const [before, after] = [pushes([String(5000 + 2 * race)], 1), pushes([String(5001 + 2 * race)], 1)]
      const [, added] = await Promise.all([record(...before), addEndpoint(writes, NOON, { name: `added ${race}` })])
      const { outcomes } = await record(...after)
      expect(outcomes).toMatchObject([{ kind: 'recorded', queued: race + 2 }])
      const sequences = (await added.take()).map(({ sequence }) => sequence)
      expect(sequences).toEqual([...new Set(sequences)])
      expect(sequences.length).toBeGreaterThanOrEqual(1)
      expect(sequences.length).toBeLessThanOrEqual(2)
    }
  })
})
