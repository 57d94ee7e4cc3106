import { expect, test } from 'vitest'
import { createFollowerPlaces, type Place } from '../../../src/http/delivery/follower-places.ts'

const isRevoked = ({ revoked }: Place) => revoked.aborted

test('one app may hold every place while no other asks', () => {
  const places = createFollowerPlaces(8)
  const held = Array.from({ length: 8 }, () => places.take('shop'))
  expect(() => places.take('shop')).toThrow('Too many requests follow the feed at once')
  expect(held.some(isRevoked)).toBe(false)
})

test('the app with most places gives its oldest to an app with less than a quarter', () => {
  const places = createFollowerPlaces(8)
  const held = Array.from({ length: 8 }, () => places.take('shop'))
  const others = [places.take('billing'), places.take('billing')]
  expect(held.map(isRevoked)).toEqual([true, true, false, false, false, false, false, false])
  expect(() => places.take('billing')).toThrow()
  expect(() => places.take('shop')).toThrow()
  expect([...others, places.take('search'), places.take('search')].some(isRevoked)).toBe(false)
  expect([places.take('portal'), places.take('portal')].some(isRevoked)).toBe(false)
  expect(held.filter(isRevoked)).toHaveLength(6)
  // All hold a quarter.
  expect(() => places.take('a fifth')).toThrow()
})

test('a place is released only once', () => {
  const places = createFollowerPlaces(4)
  const held = Array.from({ length: 4 }, () => places.take('shop'))
  places.take('billing')
  const [revoked, kept] = held
  revoked?.release()
  revoked?.release()
  expect(() => places.take('shop')).toThrow()
  kept?.release()
  places.take('shop')
  expect(() => places.take('shop')).toThrow()
})
