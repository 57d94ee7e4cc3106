import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dispatcherOf, type Role } from '../../../src/core/domain/admin/replica.ts'
import { type Assignment, shareRoles } from '../../../src/server/replicas/replica-lease.ts'

const ROLES: readonly Role[] = ['poller', 'janitor']

/** Lets replicas share roles in turn until no role moves. A role that is given up is free at once. */
function settle(live: readonly number[], holders: Map<Role, number>, roles: readonly Role[], only?: Assignment['only']): number {
  for (let turns = 0; turns < 100; turns++) {
    let changes = 0
    for (const me of live) {
      const { take, giveUp } = shareRoles({ live, holders, roles, ...(only === undefined ? {} : { only }) }, me)
      for (const role of giveUp) holders.delete(role)
      for (const role of take) {
        expect(holders.has(role)).toBe(false)
        holders.set(role, me)
      }
      changes += take.length + giveUp.length
    }
    if (changes === 0) return turns
  }
  throw new Error('roles keep moving')
}

const world = fc.record({
  live: fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 }),
  endpoints: fc.uniqueArray(fc.integer({ min: 1, max: 30 }), { maxLength: 20 }),
  held: fc.array(fc.tuple(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 9 })), { maxLength: 30 }),
})

test('live replicas end with equal shares of all roles, and then no role moves any more', () => {
  fc.assert(
    fc.property(world, ({ live, endpoints, held }) => {
      const dispatchers = endpoints.map((id) => dispatcherOf(String(id)))
      const roles = [...ROLES, ...dispatchers]
      // A dead replica holds no roles, because they are removed with its row.
      const holders = new Map(
        held.filter(([, by]) => live.includes(by)).map(([id, by]) => [dispatcherOf(String(id)), by] as [Role, number]),
      )
      settle(live, holders, roles)
      expect([...holders.keys()].sort()).toEqual([...roles].sort())
      for (const kind of [ROLES, dispatchers]) {
        const counts = live.map((id) => kind.filter((role) => holders.get(role) === id).length)
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
      }
    }),
  )
})

test('a replica that joins takes only its share of roles from the others', () => {
  const roles = [...ROLES, ...Array.from({ length: 9 }, (_, id) => dispatcherOf(String(id)))]
  const holders = new Map<Role, number>()
  settle([1, 2], holders, roles)
  const before = new Map(holders)
  settle([1, 2, 3], holders, roles)
  expect([...holders].filter(([role, by]) => before.get(role) !== by)).toHaveLength(3)
})

test('a replica that counts as dead takes no role', () => {
  expect(shareRoles({ live: [1, 2], holders: new Map(), roles: ROLES }, 3)).toEqual({ take: [], giveUp: [] })
})

test('only a replica that can play a role gets it; without such a replica nobody has the role', () => {
  fc.assert(
    fc.property(
      world,
      fc.array(fc.subarray([1, 2, 3, 4, 5, 6, 7, 8, 9]), { minLength: 30, maxLength: 30 }),
      ({ live, endpoints, held }, able) => {
        const dispatchers = endpoints.map((id) => dispatcherOf(String(id)))
        const roles = [...ROLES, ...dispatchers]
        const only = new Map(endpoints.map((id) => [dispatcherOf(String(id)), live.filter((one) => able[id - 1]?.includes(one))] as const))
        const holders = new Map(
          held.filter(([, by]) => live.includes(by)).map(([id, by]) => [dispatcherOf(String(id)), by] as [Role, number]),
        )
        settle(live, holders, roles, only)
        for (const role of dispatchers) {
          const candidates = only.get(role) ?? []
          const holder = holders.get(role)
          expect(candidates.length === 0 ? holder === undefined : holder !== undefined && candidates.includes(holder)).toBe(true)
        }
        expect(ROLES.every((role) => holders.has(role))).toBe(true)
      },
    ),
  )
})
