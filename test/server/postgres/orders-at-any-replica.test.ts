import { expect, onTestFinished, test } from 'vitest'
import { openWriteSide } from '../../../src/assembly/open-write-side.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { strictLog } from '../../support/history/observed.ts'
import { deliverOptions, recordOptions } from '../../support/history/policy.ts'
import { NOON } from '../../support/runner/constants.ts'
import { newPlace } from '../../support/store/engines.ts'
import { openStore } from '../../support/store/write-side.ts'

/** Opens the store as a replica that holds no role: it may not do what belongs to the poller, the janitor or a dispatcher. */
async function openWithoutRoles(place: string) {
  const engine = {
    ...postgres,
    openWriteStore: (path: string) => postgres.openWriteStore(path, { replicaId: () => 999 }),
  }
  const clock = { now: () => NOON, monotonic: () => 0 }
  const writes = await openWriteSide({ sqlitePath: place, engine, record: recordOptions, deliver: deliverOptions }, clock, strictLog)
  onTestFinished(() => writes.close())
  return writes
}

test('orders of operators are carried out at a replica that holds no role', async () => {
  const place = await newPlace(postgres)
  const one = await openStore(NOON, postgres, place)
  const removed = await addEndpoint(one.writes, NOON, { name: 'removed' })
  await one.push({ trackingIds: ['4711'] })
  await one.writes.removeEndpoint({ id: removed.id, nowMs: NOON })
  const writes = await openWithoutRoles(place)
  // What belongs to a role is refused here.
  const round = { settled: [], inFlight: {}, allowance: {}, claimsMax: 1, nowMs: NOON }
  await expect(writes.dispatchRound(round)).rejects.toThrow()
  const { id } = await addEndpoint(writes, NOON, { name: 'shop' })
  const orders: Readonly<Record<string, () => Promise<unknown>>> = {
    changeEndpoint: () => writes.changeEndpoint({ id, change: { ratePerSecond: 5 }, key: null, nowMs: NOON }),
    retryEndpoint: () => writes.retryEndpoint({ id, nowMs: NOON }),
    retryDelivery: () => writes.retryDelivery({ deliveryId: 1, nowMs: NOON }),
    skipDelivery: () => writes.skipDelivery({ deliveryId: 1 }),
    cancelRemoved: () => writes.cancelRemoved({ limit: 10 }),
    rotateTokenKeys: () => writes.rotateTokenKeys({ nowMs: NOON, keepMs: 1000 }),
    unwatch: () => writes.unwatch({ identifier: '4711' }),
    removeEndpoint: () => writes.removeEndpoint({ id, nowMs: NOON }),
  }
  const refused: string[] = []
  for (const [name, order] of Object.entries(orders)) await order().catch((error: unknown) => refused.push(`${name}: ${String(error)}`))
  expect(refused).toEqual([])
})
