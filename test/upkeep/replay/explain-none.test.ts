import { describe, expect, test } from 'vitest'
import { noFilters } from '../../../src/core/domain/delivery/endpoint-state.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import { replayManyAt } from '../../support/delivery/replay-many-at.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { OPERATOR } from '../../support/relay/operator.ts'
import { NOON } from '../../support/runner/constants.ts'
import { engines } from '../../support/store/engines.ts'
import { openStore } from '../../support/store/write-side.ts'

async function openReplays(engine: Engine) {
  const { writes, reads, push, poll, now } = await openStore(NOON, engine)
  const replayMany = replayManyAt({ write: writes, reads, clock: { now, monotonic: now } })
  return {
    push,
    poll,
    add: (settings: Parameters<typeof addEndpoint>[2]) => addEndpoint(writes, NOON, settings),
    sequences: async () => (await reads.readFeed({ after: 0, limit: 100 })).items.map(({ sequence }) => sequence),
    async whyNone(id: string, order: object) {
      const left = new AbortController().signal
      const counted = await replayMany(id, { ...order, dryRun: true }, { by: OPERATOR, left })
      return counted.kind === 'counted' ? counted.because : counted
    },
  }
}

describe.each(engines)('a replay that selects nothing says why on $name', (engine) => {
  test('the event is unknown, of another parcel or filtered out, or its delivery in another state', async () => {
    const { push, add, sequences, whyNone } = await openReplays(engine)
    const { id, take } = await add({ name: 'shop', filters: { ...noFilters, status: ['DeliveryStarted'] } })
    await push({ trackingIds: ['1001'], status: 'DeliveryStarted' })
    await push({ trackingIds: ['2002'], status: 'TerminalArrived' })
    const [wanted = 0, unwanted = 0] = await sequences()
    expect(await whyNone(id, { sequence: wanted })).toBe(`The delivery of event ${wanted} has not ended: it is sent without a replay.`)
    expect(await whyNone(id, { since: 0 })).toBe('No delivery that matches has ended. What still waits is sent without a replay.')
    await take()
    const inState = 'Matching deliveries are in the state delivered, which was not asked for: give that state to send them again.'
    for (const order of [{ sequence: wanted }, { since: 0 }]) expect(await whyNone(id, order)).toBe(inState)
    expect(await whyNone(id, { sequence: wanted, state: 'delivered' })).toBeUndefined()
    expect(await whyNone(id, { sequence: wanted, since: wanted + 1, state: 'delivered' })).toMatch(
      / is older than the start of the selection \(since\)/,
    )
    expect(await whyNone(id, { sequence: wanted, parcel: '2002' })).toBe(`Event ${wanted} is about another parcel.`)
    expect(await whyNone(id, { sequence: unwanted })).toMatch(/has no delivery of event \d+: its filters do not take it, or /)
    expect(await whyNone(id, { sequence: unwanted + 1 })).toBe(`There is no event ${unwanted + 1}: the feed ends at ${unwanted}.`)
  })

  test('the endpoint was added later, or events of this kind are not sent to endpoints', async () => {
    const { push, poll, add, sequences, whyNone } = await openReplays(engine)
    await push({ trackingIds: ['1001'], status: 'DeliveryStarted', eventTime: '2026-03-01T11:00:00Z' })
    await poll({
      asked: 'AB1001',
      trackingIds: ['1001'],
      statuses: [{ status: 'DeliveryStarted', eventTimestamp: '2026-03-01T11:00:00Z' }],
    })
    const [first = 0, updated = 0] = await sequences()
    const { id } = await add({ name: 'shop' })
    expect(await whyNone(id, { sequence: first })).toMatch(
      /^The endpoint was set up later than event \d+: it is sent events from \d+ on\.$/,
    )
    expect(await whyNone(id, { sequence: updated })).toBe(`Event ${updated} is of the kind update, which endpoints are not sent.`)
  })

  test('an order for what an endpoint missed is refused, and says what to do instead', async () => {
    const { add, whyNone } = await openReplays(engine)
    const { id } = await add({ name: 'shop' })
    await expect(whyNone(id, { missing: true })).rejects.toThrow(
      /sent everything that happened since it began.*"from": N and "backfill": true/,
    )
  })
})
