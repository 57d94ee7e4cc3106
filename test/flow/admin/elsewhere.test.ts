import { expect, test } from 'vitest'
import { tellElsewhere } from '../../../src/flow/admin/elsewhere.ts'
import type { Watermarks } from '../../../src/flow/admin/ports.ts'

const BEFORE: Watermarks = { server: 1, sequence: 10, endpoints: 10, roles: 10, orders: 10, isMoving: false }
const ALL = ['setBack', 'committed', 'reordered', 'replicasChanged']

/** What is told after a look that found `seen`. */
function toldOf(seen: Partial<Watermarks>, before: Watermarks | null = BEFORE): readonly string[] {
  const told: string[] = []
  const note = (what: string) => () => void told.push(what)
  tellElsewhere(
    before,
    { ...BEFORE, ...seen },
    {
      committed: note('committed'),
      reordered: note('reordered'),
      replicasChanged: note('replicasChanged'),
      moving: note('moving'),
      setBack: note('setBack'),
    },
  )
  return told
}

test('each number that has risen tells of what it counts, and the first look of nothing but a move', () => {
  expect(toldOf({})).toEqual([])
  expect(toldOf({ sequence: 11 })).toEqual(['committed'])
  expect([toldOf({ orders: 11 }), toldOf({ endpoints: 11 })]).toEqual([['reordered'], ['reordered']])
  expect(toldOf({ roles: 11 })).toEqual(['replicasChanged'])
  expect([toldOf({ isMoving: true }), toldOf({ isMoving: true, sequence: 11 }, null)]).toEqual([['moving'], ['moving']])
})

test.each([
  ['another server, though its numbers are higher', { server: 2, sequence: 12 }],
  ['a lower sequence', { sequence: 9 }],
  ['a lower number of orders', { orders: 9 }],
  ['a lower number of endpoints', { endpoints: 9 }],
  ['a lower number of roles', { roles: 9 }],
])('S18: %s means that commits may be lost, so everything is looked at anew', (_, seen) => {
  expect(toldOf(seen)).toEqual(ALL)
})
