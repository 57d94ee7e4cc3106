import { expect, test } from 'vitest'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../support/history/builders.ts'
import { NOON } from '../../support/runner/constants.ts'
import { newPlace } from '../../support/store/engines.ts'
import { storedNumber } from '../../support/store/stored-rows.ts'
import { incomingPush, openStore } from '../../support/store/write-side.ts'

const RACES = 60

test('an operator’s change at one replica is not undone by another replica’s write', async () => {
  const place = await newPlace(postgres)
  const [one, other] = [await openStore(NOON, postgres, place), await openStore(NOON, postgres, place)]
  const { id } = await addEndpoint(one.writes, NOON)
  const lost: unknown[] = []
  for (let race = 1; race <= RACES; race++) {
    const nowMs = NOON + race * 10_000
    const body = pushBody({ trackingIds: [String(10_000 + race)], eventTime: new Date(NOON - 1000 + race).toISOString() })
    await one.record(incomingPush(body, nowMs))
    const { claimed } = await one.writes.dispatchRound({ settled: [], inFlight: {}, allowance: {}, claimsMax: 10, nowMs })
    const failed = claimed.map(({ body: _body, previousSequence: _previous, ...delivery }) => ({
      ...delivery,
      result: { kind: 'rejected' as const, status: 500, retryAfterMs: null, durationMs: 1, answerStart: new Uint8Array() },
      atMs: nowMs,
      random: 0.5,
    }))
    const name = `shop ${race}`
    await Promise.all([
      one.writes.dispatchRound({ settled: failed, inFlight: {}, allowance: {}, claimsMax: 0, nowMs }),
      other.writes.retryEndpoint({ id, nowMs: nowMs + 1 }),
      race % 2 === 0 ? other.writes.changeEndpoint({ id, change: { name }, key: null, nowMs }) : undefined,
    ])
    const wokenAtMs = await storedNumber(place, 'select woken_at_ms from endpoint')
    const failing = await storedNumber(place, 'select count(failing_since_ms) from endpoint')
    if (wokenAtMs !== nowMs + 1) lost.push([race, 'retry', wokenAtMs])
    if (failing !== 1) lost.push([race, 'failure'])
  }
  expect(lost).toEqual([])
})
