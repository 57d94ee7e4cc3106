import { describe, expect, test } from 'vitest'
import type { ClaimedDelivery, SettledAttempt } from '../../../../src/core/domain/delivery/dispatch-round.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

const acceptedAt = ({ body: _body, previousSequence: _previous, ...delivery }: ClaimedDelivery): SettledAttempt => ({
  ...delivery,
  result: { kind: 'accepted', status: 200, durationMs: 1, answerStart: new Uint8Array() },
  atMs: NOON,
  random: 0.5,
})

describe.each(engines)('a join during a delivery on $name', (engine) => {
  test('7.3: a delivery that ends after a join lets the next one of the joined parcel begin', async () => {
    const { push, writes } = await openStore(NOON, engine)
    await writes.watch({ identifier: '1001', nowMs: NOON })
    await addEndpoint(writes, NOON)
    await push({ trackingIds: ['2002'] })
    const turn = { inFlight: {}, allowance: {}, claimsMax: 10, nowMs: NOON }
    const { claimed } = await writes.dispatchRound({ ...turn, settled: [] })
    expect(claimed).toHaveLength(1)
    await push({ trackingIds: ['1001', '2002'], eventTime: '2026-03-01T11:00:00.000Z' })
    const { claimed: next } = await writes.dispatchRound({ ...turn, settled: claimed.map(acceptedAt) })
    expect(next.map(({ body }) => String(body))).toEqual([expect.stringContaining('11:00:00.000Z')])
  })
})
