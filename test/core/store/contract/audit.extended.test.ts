import { describe, expect, test } from 'vitest'
import type { ActionName, OperatorAction } from '../../../../src/core/domain/admin/operator-action.ts'
import { addEndpoint, endpointSettings } from '../../../support/delivery/stored-endpoint.ts'
import { OPERATOR } from '../../../support/relay/operator.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

const order = (action: ActionName): OperatorAction => ({ atMs: NOON, by: OPERATOR, action, target: null, detail: {} })
const replayOf = (endpointId: string) =>
  ({
    selection: { endpointId, states: ['delivered'], fromSequence: 0, fromMs: 0, deliveryId: null, sequence: null, parcelId: null },
    to: endpointId,
    untilMs: NOON,
  }) as const

async function open(engine: (typeof engines)[number]) {
  const store = await openStore(NOON, engine)
  const trail = async () =>
    (await store.reads.listActions({ before: null, limit: 100 })).actions.map(({ action, detail }) => [action, detail]).reverse()
  return { ...store, trail }
}

describe.each(engines)('the audit trail on $name', (engine) => {
  test('a change that was made is recorded with who made it and from where', async () => {
    const { writes, reads } = await open(engine)
    const { id } = await addEndpoint(writes, NOON)
    const action: OperatorAction = { ...order('endpoint.retried'), target: { kind: 'endpoint', id }, detail: { endpoint: 'shop' } }
    expect(await writes.retryEndpoint({ id, nowMs: NOON, action })).toBe('done')
    expect((await reads.listActions({ before: null, limit: 10 })).actions).toEqual([{ id: expect.any(Number), ...action }])
  })

  test('changes of endpoints are recorded if they were made, and not if they were refused', async () => {
    const { writes, trail } = await open(engine)
    const add = async (name: string) => {
      const id = await writes.reserveEndpoint(NOON)
      const settings = { ...endpointSettings, name }
      return {
        id,
        ...(await writes.addEndpoint({ id, settings, key: 'sealed', from: null, nowMs: NOON, action: order('endpoint.added') })),
      }
    }
    const { id } = await add('shop')
    expect((await add('shop')).kind).toBe('name_taken')
    const change = { change: { name: 'store' }, key: null, nowMs: NOON, action: order('endpoint.changed') }
    expect((await writes.changeEndpoint({ ...change, id })).kind).toBe('done')
    expect((await writes.changeEndpoint({ ...change, id: '1000' })).kind).toBe('unknown')
    expect(await writes.removeEndpoint({ id, nowMs: NOON, action: order('endpoint.removed') })).toBe('done')
    expect(await writes.removeEndpoint({ id, nowMs: NOON, action: order('endpoint.removed') })).toBe('unknown')
    expect(await writes.retryEndpoint({ id, nowMs: NOON, action: order('endpoint.retried') })).toBe('unknown')
    expect((await trail()).map(([action]) => action)).toEqual(['endpoint.added', 'endpoint.changed', 'endpoint.removed'])
  })

  test('changes of deliveries are recorded if they were made', async () => {
    const { writes, push, now, trail } = await open(engine)
    const { id, take } = await addEndpoint(writes, NOON)
    await push()
    const replay = { ...replayOf(id), after: null, limit: 10, nowMs: now(), action: order('deliveries.replayed') }
    // No delivery has ended yet, so there is none to replay.
    expect((await writes.replayDeliveries(replay))?.count).toBe(0)
    const [delivery] = await take()
    expect((await writes.replayDeliveries(replay))?.count).toBe(1)
    const deliveryId = delivery?.deliveryId ?? 0
    expect(await writes.retryDelivery({ deliveryId, nowMs: now(), action: order('delivery.retried') })).toBe('done')
    expect(await writes.skipDelivery({ deliveryId, action: order('delivery.skipped') })).toBe('done')
    expect(await writes.skipDelivery({ deliveryId: 1_000_000, action: order('delivery.skipped') })).toBe('unknown')
    expect((await trail()).map(([action]) => action)).toEqual(['deliveries.replayed', 'delivery.retried', 'delivery.skipped'])
  })

  test('the start of a job is recorded with its number, and its cancellation once', async () => {
    const { writes, trail } = await open(engine)
    const task = { kind: 'replay', ...replayOf('1') } as const
    const job = await writes.startJob({ task, by: 'admin', nowMs: NOON, action: order('deliveries.replayed') })
    const jobId = job?.jobId ?? 0
    for (const nowMs of [NOON + 1, NOON + 2]) await writes.cancelJob({ jobId, nowMs, action: order('job.cancelled') })
    expect(await trail()).toEqual([
      ['deliveries.replayed', { job: String(jobId) }],
      ['job.cancelled', { kind: 'replay' }],
    ])
  })

  test('changes of parcels and pushes are recorded with their results', async () => {
    const { writes, record, now, inboxIds, trail } = await open(engine)
    await record(incomingPush(Buffer.from('not JSON'), now()))
    for (const inboxId of await inboxIds()) await writes.reprocess({ inboxId, nowMs: now(), action: order('push.reprocessed') })
    expect((await writes.reprocess({ inboxId: 1_000_000, nowMs: now(), action: order('push.reprocessed') })).kind).toBe('unknown')
    for (let times = 0; times < 2; times++) await writes.watch({ identifier: 'AB1001', nowMs: now(), action: order('parcel.watched') })
    await writes.watchMany({ identifiers: ['AB1002', 'AB1003'], nowMs: now(), action: order('parcels.watched') })
    await writes.unwatch({ identifier: 'AB1001', action: order('parcel.unwatched') })
    expect(await writes.unwatch({ identifier: 'AB9999', action: order('parcel.unwatched') })).toBeNull()
    expect(await trail()).toEqual([
      ['push.reprocessed', { outcome: 'quarantined' }],
      ['parcel.watched', { created: true }],
      ['parcel.watched', { created: false }],
      ['parcels.watched', {}],
      ['parcel.unwatched', {}],
    ])
  })
})
