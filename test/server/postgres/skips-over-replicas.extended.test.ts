import { expect, test } from 'vitest'
import type { ClaimedDelivery, DispatchRound, SettledAttempt } from '../../../src/core/domain/delivery/dispatch-round.ts'
import type { WriteTx } from '../../../src/core/store/write-store.ts'
import { createPostgresWriter } from '../../../src/server/postgres/postgres.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { createPostgresWriteStore } from '../../../src/server/postgres/postgres-write-store.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { NOON } from '../../support/runner/constants.ts'
import { openTestPool } from '../../support/store/postgres-pool.ts'
import { changeStoredRows } from '../../support/store/stored-rows.ts'
import { openStore } from '../../support/store/write-side.ts'

/** Stores a skipped delivery that another replica may be sending. */
async function openSkipped() {
  const store = await openStore(NOON, postgres)
  const { id } = await addEndpoint(store.writes, NOON)
  await store.push()
  const { path, writes, reads } = store
  const round = (rest: Partial<DispatchRound> = {}) =>
    writes.dispatchRound({ settled: [], inFlight: {}, allowance: {}, claimsMax: 100, nowMs: NOON, held: [], ...rest })
  const delivery = async () =>
    (await reads.listDeliveries({ endpointId: id, parcelId: null, state: null, before: null, limit: 1 })).deliveries[0]
  const register = `insert into replica (name, version, fingerprint, endpoints, keys, started_at_ms, seen_at_ms, until_ms)
    values ('other', '1', '', '[]', '[]', 0, 0, 9000000000000)`
  await changeStoredRows(path, register)
  await changeStoredRows(path, `insert into role (name, replica_id) select 'dispatcher/${id}', id from replica`)
  const [claimed] = (await round({ held: [id] })).claimed
  if (claimed === undefined) throw new Error('nothing was claimed')
  expect(await writes.skipDelivery({ deliveryId: claimed.deliveryId })).toBe('done')
  const leave = () => changeStoredRows(path, 'delete from role')
  return { ...store, id, round, claimed, delivery, state: async () => (await delivery())?.state, leave }
}

const RETRYING = { round: 0, attempts: 1, settlement: { state: 'retrying', nextAttemptAtMs: NOON + 1000 } } as const

/** Runs a transaction as a round does, but lets the test act between its reads and its writes. */
function interrupted(path: string, work: (tx: WriteTx) => Promise<void>): Promise<void> {
  return createPostgresWriteStore(createPostgresWriter(openTestPool(path, 2), { named: true })).transaction(work)
}

function refused({ body: _body, previousSequence: _previous, ...delivery }: ClaimedDelivery): SettledAttempt {
  const result = { kind: 'rejected', status: 500, retryAfterMs: null, durationMs: 1, answerStart: new Uint8Array() } as const
  return { ...delivery, result, atMs: NOON, random: 0.5 }
}

test('a skipped delivery is left to the replica that delivers to its endpoint', async () => {
  const { round, state } = await openSkipped()
  await round()
  expect(await state()).toBe('queued')
})

test('a skipped delivery of an endpoint that no replica delivers to is ended by any replica', async () => {
  const { round, state, leave } = await openSkipped()
  await leave()
  await round()
  expect(await state()).toBe('dead')
})

test('a replica that gives up an endpoint ends skipped deliveries when their attempts end', async () => {
  const { round, state, claimed } = await openSkipped()
  await round({ settled: [refused(claimed)] })
  expect(await state()).toBe('dead')
})

test('a delivery skipped while its round settles is ended by the next round', async () => {
  const { id, path, writes, claimed, delivery, round } = await openSkipped()
  const { deliveryId } = claimed
  await writes.retryDelivery({ deliveryId, nowMs: NOON })
  await interrupted(path, async (tx) => {
    expect(await tx.findSkipped([id])).toEqual([])
    await writes.skipDelivery({ deliveryId })
    tx.saveSettlements([{ ...refused(claimed), ...RETRYING }], [], NOON)
    const look = { endpointId: id, round: 1, wokenAtMs: 0, underWay: [], limit: 9, nowMs: NOON + 2000 }
    expect((await tx.findNextDeliveries(look)).deliveries).toEqual([])
  })
  expect(await delivery()).toMatchObject({ state: 'retrying', reason: 'skipped' })
  expect((await round({ held: [id], nowMs: NOON + 2000 })).claimed).toEqual([])
  expect(await delivery()).toMatchObject({ state: 'dead', reason: 'skipped', attempts: 1 })
})

test('a skip that is undone by a retry during a round does not end the delivery', async () => {
  const { id, path, writes, push, claimed, reads } = await openSkipped()
  await push({ eventTime: '2026-03-01T11:00:00.000Z' })
  const { deliveryId } = claimed
  await interrupted(path, async (tx) => {
    const skipped = await tx.findSkipped([id])
    expect(skipped).toEqual([{ deliveryId, endpointId: id }])
    await writes.retryDelivery({ deliveryId, nowMs: NOON })
    tx.saveSettlements([], skipped, NOON)
  })
  const { claimed: next } = await writes.dispatchRound({ settled: [], inFlight: {}, allowance: {}, claimsMax: 100, nowMs: NOON })
  expect(next.map((one) => one.deliveryId)).toEqual([deliveryId])
  const { deliveries } = await reads.listDeliveries({ endpointId: id, parcelId: null, state: 'queued', before: null, limit: 9 })
  expect(deliveries).toHaveLength(2)
})
