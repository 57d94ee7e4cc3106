import { expect, test } from 'vitest'
import type { TokenKeys } from '../../../../../src/core/domain/admin/token-keys.ts'
import { createTokenKeyring } from '../../../../../src/core/flow/admin/tokens/authenticate.ts'

const keyOf = (byte: number) => Buffer.alloc(32, byte)
const keysOf = (current: number, ...previous: TokenKeys['previous']): TokenKeys => ({ current: keyOf(current), previous })

/** Opens a keyring on a store that another replica may change. The test ends its pauses. */
function startWorld(first: TokenKeys) {
  const world = { stored: first, reads: 0, nowMs: 1000, monotonicMs: 0, pauses: [] as number[], resume: () => {} }
  const ring = createTokenKeyring(first, {
    write: {
      async tokenKeys() {
        world.reads += 1
        return world.stored
      },
    },
    clock: { now: () => world.nowMs, monotonic: () => world.monotonicMs },
    pause: (ms) => {
      world.pauses.push(ms)
      return new Promise((resolve) => {
        world.resume = () => {
          world.monotonicMs += ms
          resolve()
        }
      })
    },
  })
  return { ...ring, world }
}

const nameOf = (keys: TokenKeys) => startWorld(keys).current().name

test('a replaced key still verifies tokens until it expires', () => {
  const { find, world, current } = startWorld(keysOf(2, { key: keyOf(1), untilMs: 2000 }))
  const old = nameOf(keysOf(1))
  expect([find(old)?.key, find(current().name)?.key]).toEqual([keyOf(1), keyOf(2)])
  world.nowMs = 2000
  expect([find(old), find(current().name)?.key]).toEqual([null, keyOf(2)])
})

test('a token signed with another replica’s new key is accepted at once', async () => {
  const { seek, world, current } = startWorld(keysOf(1))
  world.stored = keysOf(2, { key: keyOf(1), untilMs: 9000 })
  expect((await seek(nameOf(keysOf(2))))?.key).toEqual(keyOf(2))
  expect(current().key).toEqual(keyOf(2))
})

test('without other replicas an unknown key name is refused at once', async () => {
  const tokenKeys = () => Promise.reject(new Error('not asked'))
  const ports = { write: { tokenKeys }, clock: { now: () => 0, monotonic: () => 0 }, pause: tokenKeys, isShared: false }
  expect(await createTokenKeyring(keysOf(1), ports).seek('made up')).toBeNull()
})

test('unknown key names cause at most one read a second, and no valid token is refused', async () => {
  const { seek, world } = startWorld(keysOf(1))
  expect(await seek('made up')).toBeNull()
  const waiting = Array.from({ length: 100 }, (_, at) => seek(`made up ${at}`))
  world.stored = keysOf(2)
  const honest = seek(nameOf(keysOf(2)))
  expect([world.reads, world.pauses]).toEqual([1, [1000]])
  world.resume()
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => null))
  expect((await honest)?.key).toEqual(keyOf(2))
  expect(world.reads).toBe(2)
})

test('a lookup rejects while the store does not answer, and the next one tries again', async () => {
  const ports = { clock: { now: () => 0, monotonic: () => 0 }, pause: async () => undefined }
  let isAway = true
  const tokenKeys = async () => {
    if (isAway) throw new Error('away')
    return keysOf(2)
  }
  const { seek } = createTokenKeyring(keysOf(1), { ...ports, write: { tokenKeys } })
  await expect(seek('made up')).rejects.toThrow('away')
  isAway = false
  expect((await seek(nameOf(keysOf(2))))?.key).toEqual(keyOf(2))
})
