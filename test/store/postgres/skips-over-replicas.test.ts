import { expect, test } from 'vitest'
import type { DispatchRound } from '../../../src/domain/delivery/dispatch-round.ts'
import { postgres } from '../../../src/store/postgres/postgres-engine.ts'
import { addEndpoint } from '../../support/stored-endpoint.ts'
import { changeStoredRows } from '../../support/stored-rows.ts'
import { openStore } from '../../support/write-side.ts'

const NOON = Date.UTC(2026, 2, 1, 12)

/** A delivery that is skipped, and that another replica may send. */
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
  return { id, round, claimed, state: async () => (await delivery())?.state, leave: () => changeStoredRows(path, 'delete from role') }
}

test('what is skipped is left to the replica that delivers to its endpoint', async () => {
  const { round, state } = await openSkipped()
  await round()
  expect(await state()).toBe('queued')
})

test('what is skipped of an endpoint that no replica delivers to is ended by any', async () => {
  const { round, state, leave } = await openSkipped()
  await leave()
  await round()
  expect(await state()).toBe('dead')
})

test('a replica that gives up an endpoint ends what was skipped when its attempt ends', async () => {
  const { round, state, claimed } = await openSkipped()
  const { body: _body, previousSequence: _previous, ...delivery } = claimed
  const result = { kind: 'rejected', status: 500, retryAfterMs: null, durationMs: 1, answerStart: new Uint8Array() } as const
  await round({ settled: [{ ...delivery, result, atMs: NOON, random: 0.5 }] })
  expect(await state()).toBe('dead')
})
