import { expect, test } from 'vitest'
import { createCarrierModelKeeper } from '../../../src/core/flow/polling/carrier-model.ts'
import { createClaimDuePolls } from '../../../src/core/flow/polling/claim-polls.tx.ts'
import { createSettleMissedPushes } from '../../../src/core/flow/polling/schedule-poll.tx.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { aPoll, pushBody } from '../../support/history/builders.ts'
import { recordOptions } from '../../support/history/policy.ts'
import { HOUR_MS, MINUTE_MS, NOON } from '../../support/runner/constants.ts'
import { createBeside } from '../../support/store/gated-writer.ts'
import { changeStoredRows } from '../../support/store/stored-rows.ts'
import { incomingPush, openStore } from '../../support/store/write-side.ts'

/** Events happen in the morning and are recorded at noon, because an event in the future would not count. */
const MORNING = NOON - 3 * HOUR_MS

async function openWorld() {
  const store = await openStore(NOON, postgres)
  /** Records a push of an event this many minutes into the morning. */
  const push = (minute: number, ...trackingIds: readonly string[]) => {
    const eventTime = new Date(MORNING + minute * MINUTE_MS).toISOString()
    return store.record(incomingPush(pushBody({ trackingIds, eventTime }), NOON))
  }
  return { ...store, push, beside: createBeside(store.path) }
}

test('6.6: a missed entry is counted once, although its parcel is joined meanwhile', async () => {
  const { record, push, beside, writes } = await openWorld()
  const nowMs = NOON + 3 * HOUR_MS
  for (let gate = 0; ; gate++) {
    const [one, other] = [`1${1000 + gate}`, `2${1000 + gate}`]
    for (const [nth, id] of [one, other].entries()) {
      await push(nth, id)
      const statuses = [{ eventTimestamp: new Date(MORNING + (30 + nth) * MINUTE_MS).toISOString().replace('.000', '') }]
      await record({ kind: 'poll', observation: aPoll({ asked: id, trackingIds: [id], statuses, askedAtMs: NOON + HOUR_MS }), watch: true })
    }
    const { result: missed, wasReached } = await beside(
      gate,
      (gated) => createSettleMissedPushes(gated)(nowMs),
      () => push(90, one, other),
    )
    const later = await writes.settleMissedPushes(nowMs)
    const found = [...missed, ...later].map(({ eventAtMs }) => (eventAtMs - MORNING) / MINUTE_MS)
    expect([gate, found.toSorted((a, b) => a - b)]).toEqual([gate, [30, 31]])
    if (!wasReached) break
  }
})

test('6.1: if parcels are joined during a claim of polls, the claim still returns the others', async () => {
  const { path, push, beside, parcelIdOf } = await openWorld()
  const clock = { now: () => NOON + 12 * HOUR_MS }
  const model = createCarrierModelKeeper(clock).current
  for (let gate = 0; ; gate++) {
    const [one, other, third] = [`1${1000 + gate}`, `2${1000 + gate}`, `3${1000 + gate}`]
    for (const id of [one, other, third]) await push(0, id)
    await changeStoredRows(path, `update parcel set next_poll_at_ms = ? where id = ${await parcelIdOf(third)}`, NOON + 1)
    const { result: claimed, wasReached } = await beside(
      gate,
      (store) =>
        createClaimDuePolls({ store, clock, model }, recordOptions, () => 0).claimDuePolls({
          nowMs: clock.now(),
          limit: 1000,
          leaseMs: 1000,
        }),
      () => push(1, one, other),
    )
    const ids = claimed.map(({ parcelId }) => parcelId)
    expect([gate, ids.includes(await parcelIdOf(third)), new Set(ids).size]).toEqual([gate, true, ids.length])
    if (!wasReached) break
  }
})
