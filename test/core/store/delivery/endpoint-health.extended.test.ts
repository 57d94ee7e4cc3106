import { describe, expect, test } from 'vitest'
import { CLAIMS_PER_ATTEMPT } from '../../../../src/core/domain/delivery/delivery.ts'
import type { ClaimedDelivery, DispatchRoundReport, SettledAttempt } from '../../../../src/core/domain/delivery/dispatch-round.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { endpointSettings } from '../../../support/delivery/stored-endpoint.ts'
import { deliverOptions } from '../../../support/history/policy.ts'
import { HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

/** Opens a store with one endpoint. The test sets the clock, and the answers of the endpoint. */
async function startEndpoint(engine: Engine) {
  const store = await openStore(NOON, engine)
  const id = await store.writes.reserveEndpoint(NOON)
  await store.writes.addEndpoint({ id, settings: endpointSettings, key: 'sealed', from: null, nowMs: NOON })
  let claimed: readonly ClaimedDelivery[] = []
  const accepted: ClaimedDelivery[] = []

  type Answer = 200 | 503
  async function turn(answer: Answer | ((delivery: ClaimedDelivery) => Answer) = 200): Promise<DispatchRoundReport> {
    const answerTo = typeof answer === 'number' ? () => answer : answer
    accepted.push(...claimed.filter((delivery) => answerTo(delivery) === 200))
    const settled = claimed.map((delivery): SettledAttempt => {
      const { body: _body, previousSequence: _previous, ...rest } = delivery
      const kept = { durationMs: 1, answerStart: new Uint8Array() }
      const result =
        answerTo(delivery) === 200
          ? ({ kind: 'accepted', status: 200, ...kept } as const)
          : ({ kind: 'rejected', status: 503, retryAfterMs: null, ...kept } as const)
      return { ...rest, result, atMs: store.now(), random: 0.5 }
    })
    const report = await store.writes.dispatchRound({
      settled,
      inFlight: {},
      allowance: {},
      claimsMax: 100,
      nowMs: store.now(),
    })
    claimed = report.claimed
    return report
  }
  return { ...store, id, turn, accepted }
}

const at = (minute: number, trackingIds = ['1001']) => ({ eventTime: `2026-03-01T10:0${minute}:00.000Z`, trackingIds })

describe.each(engines)('the health of an endpoint on $name', (engine) => {
  test('O6: an endpoint that is down for three days loses nothing and gets its events in order', async () => {
    const { push, pass, turn, accepted } = await startEndpoint(engine)
    for (const minute of [1, 2, 3]) await push(at(minute))
    await push(at(1, ['2002']))
    await turn()
    const notices = []
    for (let hour = 0; hour < 72; hour++) {
      pass(HOUR_MS)
      notices.push(...(await turn(503)).notices)
    }
    expect(notices.map(({ kind }) => kind)).toEqual(['failing'])
    for (let round = 0; round < 4; round++) await turn()
    expect(accepted).toHaveLength(4)
    const ofFirst = accepted
      .filter(({ parcelId }) => parcelId === accepted.find(({ previousSequence }) => previousSequence > 0)?.parcelId)
      .map(({ sequence }) => sequence)
    expect(ofFirst).toHaveLength(3)
    expect(ofFirst).toEqual(ofFirst.toSorted((a, b) => a - b))
  })

  test('O6: a delivery queued just before three days of failures is delivered after them', async () => {
    const { push, pass, turn, accepted } = await startEndpoint(engine)
    await push(at(1, ['2002']))
    await turn()
    await push(at(1))
    pass(1)
    await turn()
    expect(accepted).toHaveLength(1)
    for (let hour = 0; hour < 72; hour++) {
      pass(HOUR_MS)
      await turn(503)
    }
    await turn()
    expect(accepted).toHaveLength(2)
  })

  test('O6: a delivery dies if it alone is refused, and a replay restarts its schedule', async () => {
    const { push, pass, turn, writes, reads, id, now } = await startEndpoint(engine)
    await push(at(1))
    const [refused] = (await turn()).claimed
    const deliveryId = refused?.deliveryId ?? 0
    let others = 0
    /** Resolves with the number of attempts until the delivery died, or with undefined if it did not die within a day. */
    const attemptsUntilDead = async (answerToOthers: 200 | 503): Promise<number | undefined> => {
      for (let hour = 1; hour <= 24; hour++) {
        await push(at(1, [String(9000 + others++)]))
        pass(HOUR_MS)
        await turn((delivery) => (delivery.deliveryId === deliveryId ? 503 : answerToOthers))
        const found = await reads.findDelivery(deliveryId)
        if (found?.delivery.state === 'dead') return found.delivery.attempts
      }
      return undefined
    }
    expect(await attemptsUntilDead(200)).toBe(3)
    const any = { endpointId: id, fromSequence: 0, fromMs: 0, sequence: null, parcelId: null }
    await writes.replayDeliveries({
      selection: { ...any, deliveryId, states: ['dead'] },
      to: id,
      after: null,
      untilMs: now(),
      limit: 10,
      nowMs: pass(1),
    })
    expect(await attemptsUntilDead(503)).toBeUndefined()
    expect(await attemptsUntilDead(200)).toBeGreaterThanOrEqual(3)
  })

  test('O15: after the clock is put back by a day, attempts are made in time and nothing dies', async () => {
    const { push, pass, turn, writes, now, accepted } = await startEndpoint(engine)
    await push(at(1, ['2002']))
    await turn()
    await turn()
    expect(accepted).toHaveLength(1)
    await push(at(1))
    await turn()
    await turn(503)
    pass(-24 * HOUR_MS)
    await writes.shiftSchedule({ byMs: 24 * HOUR_MS, sinceMs: now(), nowMs: now(), afterParcelId: 0, limit: 500 })
    expect((await turn()).nextAtMs).toBe(now() + 5000)
    // The endpoint is down for three days. Its last success came earlier, but has a later time because the clock was put back.
    for (let hour = 0; hour < 72; hour++) {
      pass(HOUR_MS)
      await turn(503)
    }
    pass(HOUR_MS)
    for (let round = 0; round < 2; round++) await turn()
    expect(accepted).toHaveLength(2)
  })

  test('O15: after the clock is put forward, at most perEndpoint deliveries are sent at once', async () => {
    const { push, setClock, now, turn } = await startEndpoint(engine)
    for (let parcel = 0; parcel < 60; parcel++) await push(at(1, [String(3000 + parcel)]))
    const jump = () => setClock(now() + 48 * HOUR_MS)
    let answers = 0
    await turn()
    // There are never five failures in a row, so the endpoint does not count as failing.
    for (let round = 0; round < 2; round++) await turn(() => (answers++ % 3 === 0 ? 200 : 503))
    jump()
    expect((await turn()).claimed.length).toBeLessThanOrEqual(deliverOptions.perEndpoint * CLAIMS_PER_ATTEMPT)
    for (let round = 0; round < 4; round++) await turn(503)
    jump()
    expect((await turn(503)).claimed).toHaveLength(1)
  })

  test('O7: 120 h of failures disable an endpoint with one notice, and its deliveries wait', async () => {
    const { push, pass, now, turn, writes, reads, id, accepted } = await startEndpoint(engine)
    await push(at(1))
    await turn()
    const notices = []
    for (let hour = 0; hour < 130; hour++) {
      pass(HOUR_MS)
      // The first turn claims a probe, the second settles it.
      for (let nth = 0; nth < 2; nth++) notices.push(...(await turn(503)).notices.map(({ kind }) => ({ kind, hour })))
    }
    expect(notices).toEqual([
      { kind: 'failing', hour: 1 },
      { kind: 'disabled_failing', hour: 120 },
    ])
    await push(at(2))
    expect((await turn()).claimed).toEqual([])
    expect(await reads.listDeliveries({ endpointId: id, state: 'held', parcelId: null, before: null, limit: 10 })).toMatchObject({
      deliveries: [{}, {}],
    })
    await writes.changeEndpoint({ id, change: { enabled: true }, key: null, nowMs: now() })
    for (let round = 0; round < 3; round++) await turn()
    expect(accepted).toHaveLength(2)
  })

  test('O7: an endpoint with one success within 120 h of failures stays enabled', async () => {
    const { push, pass, turn } = await startEndpoint(engine)
    await push(at(1))
    await push(at(1, ['2002']))
    await turn()
    const notices = []
    for (let hour = 0; hour < 130; hour++) {
      pass(HOUR_MS)
      if (hour === 90) await push(at(1, ['3003']))
      for (let nth = 0; nth < 2; nth++) notices.push(...(await turn(hour === 91 ? 200 : 503)).notices)
    }
    expect(notices.map(({ kind }) => kind)).toEqual(['failing', 'recovered', 'failing'])
  })

  test('O15: a clock that jumps six years between two failures disables no endpoint', async () => {
    const { push, pass, now, setClock, turn } = await startEndpoint(engine)
    // A machine may start with a wrong clock, until it gets the time from the network.
    setClock(Date.parse('2020-01-01T00:00:00Z'))
    await push(at(1))
    await turn()
    await turn(503)
    const notices = []
    for (const jumpedTo of [NOON, NOON + 200 * HOUR_MS]) {
      setClock(jumpedTo)
      for (let nth = 0; nth < 4; nth++) {
        notices.push(...(await turn(503)).notices)
        pass(6000)
      }
    }
    expect(notices).toEqual([])
    expect(now()).toBeGreaterThan(NOON + 200 * HOUR_MS)
    for (let hour = 0; hour < 121; hour++) {
      pass(HOUR_MS)
      for (let nth = 0; nth < 2; nth++) notices.push(...(await turn(503)).notices)
    }
    expect(notices.map(({ kind }) => kind)).toEqual(['failing', 'disabled_failing'])
  })
})
