import { expect, test } from 'vitest'
import { createFollowerSlots, type Slot } from '../../../../src/core/http/delivery/events.routes.ts'

const isRevoked = ({ revoked }: Slot) => revoked.aborted

test('one app may hold every slot while no other app asks', () => {
  const slots = createFollowerSlots(8)
  const held = Array.from({ length: 8 }, () => slots.take('shop'))
  expect(() => slots.take('shop')).toThrow('Too many requests follow the feed at once')
  expect(held.some(isRevoked)).toBe(false)
})

test('an app with under a quarter of the slots takes the oldest slot of the app with the most', () => {
  const slots = createFollowerSlots(8)
  const held = Array.from({ length: 8 }, () => slots.take('shop'))
  const others = [slots.take('billing'), slots.take('billing')]
  expect(held.map(isRevoked)).toEqual([true, true, false, false, false, false, false, false])
  expect(() => slots.take('billing')).toThrow()
  expect(() => slots.take('shop')).toThrow()
  expect([...others, slots.take('search'), slots.take('search')].some(isRevoked)).toBe(false)
  expect([slots.take('portal'), slots.take('portal')].some(isRevoked)).toBe(false)
  expect(held.filter(isRevoked)).toHaveLength(6)
  // All slots are in use: four apps hold a quarter each.
  expect(() => slots.take('a fifth')).toThrow()
})

test('a slot is released only once', () => {
  const slots = createFollowerSlots(4)
  const held = Array.from({ length: 4 }, () => slots.take('shop'))
  slots.take('billing')
  const [revoked, kept] = held
  revoked?.release()
  revoked?.release()
  expect(() => slots.take('shop')).toThrow()
  kept?.release()
  slots.take('shop')
  expect(() => slots.take('shop')).toThrow()
})
