import { expect, test } from 'vitest'
import { type LapseReason, openReplicaLease } from '../../../src/server/replicas/replica-lease.ts'
import { createFakeReplicas } from '../../support/relay/fake-replicas.ts'
import { createLogBook } from '../../support/runner/log-book.ts'

const TTL_MS = 5000
const config = { configFingerprint: 'abc', endpoints: [], atRestKeys: [] }

async function open() {
  const store = createFakeReplicas()
  const events: string[] = []
  const reasons: LapseReason[] = []
  const ids: (readonly [string, number])[] = []
  const samples: { readonly askedMs: number; readonly heardMs: number }[] = []
  const note = (what: string) => () => {
    events.push(what)
    ids.push([what, lease.id()])
  }
  const { log, lines } = createLogBook()
  const lease = await openReplicaLease(
    {
      table: store.table,
      clock: store.clock,
      log,
      onServerTime: (sample) => void samples.push(sample),
      onOthersLapsed: note('others lapsed'),
      onLapsed(why) {
        reasons.push(why)
        note('lapsed')()
      },
      onLost: note('lost'),
    },
    { name: 'one', version: '1', ttlMs: TTL_MS },
    config,
  )
  return { store, lease, events, ids, samples, lines, reasons }
}

test('a lease is valid for exactly `ttlMs` by the monotonic clock', async () => {
  const { store, lease, events } = await open()
  store.pass(TTL_MS - 1)
  expect([lease.isValid(), lease.leftMs()]).toEqual([true, 1])
  store.pass(1)
  expect(lease.isValid()).toBe(false)
  expect(events).toEqual([])
  lease.check()
  lease.check()
  expect(events).toEqual(['lapsed'])
})

test('a lease does not outlast a suspension of the machine', async () => {
  const { store, lease } = await open()
  store.suspend(TTL_MS - 1)
  expect([lease.isValid(), lease.leftMs()]).toEqual([true, 1])
  store.suspend(1)
  expect(lease.isValid()).toBe(false)
  expect(lease.signal().aborted).toBe(true)
  await lease.renew()
  expect([lease.isValid(), lease.leftMs()]).toEqual([true, TTL_MS])
})

test('a renewal counts from the time it was sent, however late its answer comes', async () => {
  const { store, lease, samples } = await open()
  store.pass(1000)
  store.shut('renew')
  const renewed = lease.renew()
  store.pass(3000)
  expect(lease.leftMs()).toBe(TTL_MS - 4000)
  store.letGo('renew')
  await renewed
  expect(lease.leftMs()).toBe(TTL_MS - 3000)
  expect(samples.at(-1)).toMatchObject({ askedMs: 1000, heardMs: 4000 })
})

test('a renewal gives no lease if its answer takes as long as a lease lasts', async () => {
  const { store, lease, events } = await open()
  const { signal } = lease
  const before = signal()
  store.shut('renew')
  const renewed = lease.renew()
  store.pass(TTL_MS)
  store.letGo('renew')
  await renewed
  expect(lease.isValid()).toBe(false)
  expect(events).toEqual(['lapsed'])
  expect([before.aborted, signal().aborted]).toEqual([true, true])
})

test('without an answer, the lease expires once, and work after a later renewal is not aborted', async () => {
  const { store, lease, events } = await open()
  const before = lease.signal()
  store.setAway(true)
  for (let turn = 0; turn < 10; turn++) {
    store.pass(1000)
    await lease.renew()
  }
  expect([lease.isValid(), before.aborted, events]).toEqual([false, true, ['lapsed']])
  store.setAway(false)
  await lease.renew()
  expect([lease.isValid(), lease.signal().aborted, before.aborted]).toEqual([true, false, true])
  expect([lease.id(), events]).toEqual([1, ['lapsed']])
})

test('after a pause longer than the lease, the signal is aborted at its first use', async () => {
  const { store, lease, events } = await open()
  const before = lease.signal()
  store.pass(TTL_MS)
  expect([lease.signal().aborted, before.aborted, events]).toEqual([true, true, ['lapsed']])
})

test('the reason of an expired lease says if the process was paused or if renewals failed', async () => {
  const [paused, cut] = [await open(), await open()]
  paused.store.pass(8000)
  paused.lease.check()
  expect(paused.reasons).toEqual([{ stoodStillMs: 8000 }])
  cut.store.setAway(true)
  for (let turn = 0; turn < 6; turn++) {
    cut.store.pass(1000)
    await cut.lease.renew()
  }
  expect(cut.reasons).toEqual([{ err: expect.any(Error) }])
})

test('a replica that was declared dead loses its roles before it rejoins under a new number', async () => {
  const { store, lease, events, ids } = await open()
  const [before, term] = [lease.signal(), lease.term()]
  store.pass(1000)
  store.declareDead(lease.id())
  await lease.renew()
  expect([lease.id(), lease.isValid(), before.aborted, lease.signal().aborted]).toEqual([2, true, true, false])
  expect(lease.term()).toBeGreaterThan(term)
  expect(events).toEqual(['lapsed', 'lost'])
  // The replica still has its old number. With the new one, it could write for a role that it does not hold.
  expect(ids).toEqual([
    ['lapsed', 1],
    ['lost', 1],
  ])
})

test('a replica that was declared dead has no valid lease until it has rejoined', async () => {
  const { store, lease, events, lines } = await open()
  const { register } = store.table
  store.declareDead(lease.id())
  store.table.register = () => Promise.reject(new Error('no room'))
  store.pass(1000)
  await lease.renew()
  await lease.renew()
  expect([lease.isValid(), lease.id()]).toEqual([false, 1])
  store.table.register = register
  await lease.renew()
  expect([lease.isValid(), lease.id()]).toEqual([true, 2])
  expect(events.filter((event) => event === 'lapsed')).toHaveLength(1)
  expect(lines.filter(({ level }) => level === 'warn').length).toBeGreaterThan(0)
})

test('the log says once that renewals of the lease fail, and once that they succeed again', async () => {
  const { store, lease, lines } = await open()
  store.setAway(true)
  for (let time = 0; time < 3; time++) await lease.renew()
  store.setAway(false)
  for (let time = 0; time < 2; time++) await lease.renew()
  expect(lines.filter(({ level }) => level !== 'debug').map(({ level, message }) => [level, message])).toEqual([
    ['warn', 'the lease of this replica could not be renewed; the replica tries again every second'],
    ['info', 'the database answers again'],
  ])
})

test('a renewal notices other replicas whose leases have expired', async () => {
  const { store, lease, events } = await open()
  store.join(1500)
  store.pass(1000)
  await lease.renew()
  expect(events).toEqual([])
  store.pass(1000)
  await lease.renew()
  expect(events).toEqual(['others lapsed'])
})
