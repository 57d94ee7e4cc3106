import { expect, test } from 'vitest'
import type { Role } from '../../../src/core/domain/admin/replica.ts'
import { joinReplicas } from '../../../src/server/replicas/membership.ts'
import { createFakeReplicas } from '../../support/relay/fake-replicas.ts'
import { createLogBook } from '../../support/runner/log-book.ts'

const TTL_MS = 5000
const BOTH = ['poller', 'janitor'] as const

async function join(endpoints: readonly string[] = []) {
  const store = createFakeReplicas({ endpoints })
  const { log, lines } = createLogBook()
  const replica = await joinReplicas(
    { table: store.table, clock: store.clock, log, onServerTime: () => undefined },
    { name: 'one', version: '1', ttlMs: TTL_MS },
    { configFingerprint: 'abc', endpoints: [], atRestKeys: [] },
  )
  const events: string[] = []
  const underWay = new Map<Role, PromiseWithResolvers<void>>()
  replica.start({
    taken: (roles) => void events.push(`taken ${[...roles].sort().join(' ')}`),
    giveUp(role) {
      events.push(`giving up ${role}`)
      const work = Promise.withResolvers<void>()
      underWay.set(role, work)
      return work.promise
    },
    lapsed: () => void events.push('lapsed'),
  })
  const turn = () => replica.share(store.seen())
  return { store, replica, events, underWay, turn, lines }
}

/** Lets a second replica join, so that this replica has to give up two of its four roles. */
async function joinAndShrink() {
  const world = await join(['1', '2'])
  await world.turn()
  const other = world.store.join(1_000_000)
  await world.turn()
  const excess = [...world.underWay.keys()]
  return { ...world, other, excess }
}

test('a single replica takes all roles, and delivers to all endpoints', async () => {
  const { replica, events, turn } = await join(['1', '2'])
  expect([replica.holds('poller'), replica.endpoints()]).toEqual([false, []])
  await turn()
  expect(events).toEqual(['taken dispatcher/1 dispatcher/2 janitor poller'])
  expect([BOTH.map(replica.holds), replica.delivers('1'), replica.delivers('3')]).toEqual([[true, true], true, false])
  expect(replica.endpoints()?.toSorted()).toEqual(['1', '2'])
})

test('a replica counts the live replicas each time roles are shared', async () => {
  const { replica, turn, store } = await join([])
  await turn()
  const other = store.join(1_000_000)
  expect(replica.count()).toBe(1)
  await turn()
  expect(replica.count()).toBe(2)
  await store.table.remove(other)
  await turn()
  expect(replica.count()).toBe(1)
})

test('a role that must be given up is not used any more, and is free when its work has ended', async () => {
  const { store, replica, excess, underWay, turn, other } = await joinAndShrink()
  expect(excess.filter((role) => role.startsWith('dispatcher/'))).toHaveLength(1)
  expect(excess.filter((role) => !role.startsWith('dispatcher/'))).toHaveLength(1)
  expect(excess.map(replica.holds)).toEqual([false, false])
  expect(replica.endpoints()).toHaveLength(1)
  for (let look = 0; look < 3; look++) await turn()
  expect(excess.map((role) => store.holders.get(role))).toEqual([1, 1])
  const [first, second] = excess
  if (first === undefined || second === undefined) throw new Error('nothing is given up')
  underWay.get(first)?.resolve()
  await turn()
  await turn()
  expect([store.holders.has(first), store.holders.get(second)]).toEqual([false, 1])
  store.change(other, () => ({ take: [first], giveUp: [] }))
  await turn()
  expect([replica.holds(first), store.holders.get(first)]).toEqual([false, other])
})

test('a role is also given up if its work ends with an error', async () => {
  const { store, excess, underWay, turn } = await joinAndShrink()
  for (const role of excess) underWay.get(role)?.reject(new Error('it failed'))
  await turn()
  await turn()
  expect(excess.map((role) => store.holders.has(role))).toEqual([false, false])
})

test('if the other replica leaves, a role that is being given up is freed and then taken again', async () => {
  const { store, replica, events, excess, underWay, turn, other } = await joinAndShrink()
  store.declareDead(other)
  await turn()
  expect(excess.map(replica.holds)).toEqual([false, false])
  for (const role of excess) underWay.get(role)?.resolve()
  events.length = 0
  for (let look = 0; look < 3; look++) await turn()
  expect(excess.map(replica.holds)).toEqual([true, true])
  expect(events).toEqual([`taken ${excess.toSorted().join(' ')}`])
})

test('a replica holds no role after its lease has expired, even before it notices that', async () => {
  const { store, replica, turn, events } = await join(['1'])
  await turn()
  store.pass(TTL_MS)
  expect([...BOTH.map(replica.holds), replica.delivers('1'), replica.endpoints()]).toEqual([false, false, false, []])
  expect(events.filter((event) => event === 'lapsed')).toEqual([])
  replica.check()
  expect(events.filter((event) => event === 'lapsed')).toEqual(['lapsed'])
})

test('roles that were lost with an expired lease are taken again after the next renewal', async () => {
  const { store, replica, turn, events } = await join(['1'])
  await turn()
  store.setAway(true)
  store.pass(TTL_MS + 1)
  await replica.renew()
  await turn()
  events.length = 0
  store.setAway(false)
  await replica.renew()
  await turn()
  expect([...BOTH.map(replica.holds), replica.delivers('1')]).toEqual([true, true, true])
  expect(events).toEqual(['taken dispatcher/1 janitor poller'])
  await turn()
  expect(events).toHaveLength(1)
})

test('a replica that was declared dead returns without roles, and takes free roles', async () => {
  const { store, replica, turn, events } = await join(['1'])
  await turn()
  store.pass(TTL_MS + 1)
  store.declareDead(1)
  const other = store.join(1_000_000)
  store.change(other, () => ({ take: ['poller', 'janitor', 'dispatcher/1'], giveUp: [] }))
  await replica.renew()
  expect([...BOTH.map(replica.holds), replica.delivers('1'), replica.endpoints()]).toEqual([false, false, false, []])
  await turn()
  expect([...BOTH.map(replica.holds), replica.delivers('1')]).toEqual([false, false, false])
  events.length = 0
  store.declareDead(other)
  await turn()
  expect(events).toEqual(['taken dispatcher/1 janitor poller'])
})

test('an answer about roles that comes after the roles were lost is ignored', async () => {
  const { store, replica, turn, events } = await join(['1'])
  store.shut('changeRoles')
  const late = turn()
  store.declareDead(1)
  await replica.renew()
  store.letGo('changeRoles')
  await late
  expect([...BOTH.map(replica.holds), events.filter((event) => event.startsWith('taken'))]).toEqual([false, false, []])
})

test('roles are shared only when something has changed, and again after a failure', async () => {
  const { store, turn } = await join(['1'])
  let calls = 0
  const { changeRoles } = store.table
  const failOnce = { isDue: true }
  store.table.changeRoles = async (...given) => {
    calls += 1
    if (failOnce.isDue) {
      failOnce.isDue = false
      throw new Error('it waited too long')
    }
    return await changeRoles(...given)
  }
  await turn()
  await turn()
  // Taking a role also counts as a change.
  await turn()
  const settled = calls
  for (let look = 0; look < 5; look++) await turn()
  expect([settled >= 2, calls]).toEqual([true, settled])
  store.setEndpoints(['1', '2'])
  await turn()
  expect(store.holders.get('dispatcher/2')).toBe(1)
})

test('a replica that leaves holds no roles, and the other replicas need not wait for its lease', async () => {
  const { store, replica, turn } = await join(['1'])
  await turn()
  await replica.leave()
  expect([replica.holds('poller'), store.holders.size]).toEqual([false, 0])
})
