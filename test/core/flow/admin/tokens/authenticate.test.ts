import { describe, expect, test } from 'vitest'
import { AppError } from '../../../../../src/core/domain/errors.ts'
import { type App, createAuthenticate, type VerifiedToken, type Visitor } from '../../../../../src/core/flow/admin/tokens/authenticate.ts'
import { createTokens } from '../../../../../src/core/http/server/tokens.ts'
import { keyringOf } from '../../../../support/network/token-keyring.ts'

const shop: App = { username: 'shop', passwordHashes: ['hash of secret'], scopes: ['status'] }
const admin: App = { username: 'admin', passwordHashes: ['hash of root'], scopes: ['status', 'admin'] }

function createWorld() {
  const world = { nowMs: 1_700_000_000_000, verifications: 0, hashes: [] as string[] }
  const clock = { now: () => world.nowMs, monotonic: () => 0 }
  const tokens = createTokens({ keyring: keyringOf(Buffer.alloc(32, 7)), clock, audience: 'parcel-relay' })
  const authenticate = createAuthenticate(
    {
      tokens: {
        ...tokens,
        verify: (token) => {
          world.verifications += 1
          return tokens.verify(token)
        },
      },
      verifyPassword: async (hash, password) => {
        world.hashes.push(hash)
        return hash === `hash of ${password}`
      },
      digestPassword: (hash, password) => `${hash} ${password}`,
      rightPasswords: new Map<string, string>(),
      verified: new Map<string, VerifiedToken>(),
      clock,
    },
    { apps: [shop, admin], tokenLifetimeMs: 3_600_000, sessionMaxMs: null, dummyHash: 'hash of nobody' },
  )
  return Object.assign(world, { authenticate })
}

const somebody: Visitor = { network: '203.0.113.1', isThere: () => true, admit: async () => async () => undefined }

const unauthorized = expect.objectContaining({ code: 'unauthorized' })

test('a user with the right password gets a token that identifies the app', async () => {
  const { authenticate } = createWorld()
  const token = await authenticate.issueToken({ username: 'shop', password: 'secret' }, somebody)
  expect(await authenticate.authorize(token, 'status')).toEqual(shop)
  await expect(authenticate.authorize(token, 'admin')).rejects.toMatchObject({ code: 'forbidden' })
  const root = await authenticate.issueToken({ username: 'admin', password: 'root' }, somebody)
  expect(await authenticate.authorize(root, 'admin')).toEqual(admin)
})

test('W3: an unknown user takes as much work and gets the same answer as a wrong password', async () => {
  const world = createWorld()
  const [wrong, unknown, dummy] = await Promise.allSettled([
    world.authenticate.issueToken({ username: 'shop', password: 'guess' }, somebody),
    world.authenticate.issueToken({ username: 'nobody', password: 'guess' }, somebody),
    world.authenticate.issueToken({ username: '__proto__', password: 'nobody' }, somebody),
  ])
  expect(wrong).toMatchObject({ status: 'rejected', reason: unauthorized })
  expect(unknown).toEqual(wrong)
  expect(dummy).toEqual(wrong)
  expect(world.hashes).toEqual(['hash of secret', 'hash of nobody', 'hash of nobody'])
})

test('I17: a right password is not verified or counted again when the same network repeats it', async () => {
  const world = createWorld()
  const refused: Visitor = { ...somebody, admit: () => Promise.reject(new AppError('too_many_requests', 'Too many.')) }
  const shopHere = (password: string, visitor: Visitor) => world.authenticate.issueToken({ username: 'shop', password }, visitor)
  await expect(shopHere('secret', refused)).rejects.toMatchObject({ code: 'too_many_requests' })
  await shopHere('secret', somebody)
  expect(await world.authenticate.authorize(await shopHere('secret', refused), 'status')).toEqual(shop)
  expect(world.hashes).toEqual(['hash of secret'])
  // A wrong password counts, and so does the right one from another network.
  await expect(shopHere('guess', refused)).rejects.toMatchObject({ code: 'too_many_requests' })
  await expect(shopHere('secret', { ...refused, network: '203.0.113.2' })).rejects.toMatchObject({ code: 'too_many_requests' })
  await shopHere('secret', { ...somebody, network: '203.0.113.3' })
  expect(world.hashes).toEqual(['hash of secret'])
})

test('R3: a password that was right is verified again after the app’s password has changed', async () => {
  const world = createWorld()
  await world.authenticate.issueToken({ username: 'shop', password: 'secret' }, somebody)
  world.authenticate.replaceApps([{ ...shop, passwordHashes: ['hash of other'] }])
  await expect(world.authenticate.issueToken({ username: 'shop', password: 'secret' }, somebody)).rejects.toEqual(unauthorized)
  world.authenticate.replaceApps([])
  await expect(world.authenticate.issueToken({ username: 'shop', password: 'secret' }, somebody)).rejects.toEqual(unauthorized)
})

test('a token is valid for its lifetime, and its signature is checked once', async () => {
  const world = createWorld()
  const token = await world.authenticate.issueToken({ username: 'shop', password: 'secret' }, somebody)
  for (let attempt = 0; attempt < 3; attempt += 1) await world.authenticate.authorize(token, 'status')
  expect(world.verifications).toBe(1)
  world.nowMs += 3_600_001
  await expect(world.authenticate.authorize(token, 'status')).rejects.toEqual(unauthorized)
})

test('R3: removing an app, or changing its password, revokes its tokens at once', async () => {
  const { authenticate } = createWorld()
  const token = await authenticate.issueToken({ username: 'shop', password: 'secret' }, somebody)
  const root = await authenticate.issueToken({ username: 'admin', password: 'root' }, somebody)
  await authenticate.authorize(token, 'status')
  await authenticate.authorize(root, 'admin')
  authenticate.replaceApps([{ ...shop, passwordHashes: ['hash of other'] }])
  await expect(authenticate.authorize(token, 'status')).rejects.toEqual(unauthorized)
  await expect(authenticate.authorize(root, 'status')).rejects.toEqual(unauthorized)
  authenticate.replaceApps([shop, { ...admin, scopes: ['status'] }])
  expect(await authenticate.authorize(token, 'status')).toEqual(shop)
  await expect(authenticate.authorize(root, 'admin')).rejects.toMatchObject({ code: 'forbidden' })
})

test('R3: a token is accepted from memory only if it was checked before and is still valid', async () => {
  const world = createWorld()
  const { authenticate } = world
  const token = await authenticate.issueToken({ username: 'shop', password: 'secret' }, somebody)
  expect(authenticate.recognize(token, 'status')).toBeNull()
  await authenticate.authorize(token, 'status')
  expect([authenticate.recognize(token, 'status'), authenticate.recognize(token, 'admin')]).toEqual([shop, null])
  authenticate.replaceApps([{ ...shop, passwordHashes: ['hash of other'] }])
  expect(authenticate.recognize(token, 'status')).toBeNull()
  authenticate.replaceApps([shop])
  world.nowMs += 3_600_001
  expect(authenticate.recognize(token, 'status')).toBeNull()
})

describe('R3: a stream or request that a token keeps open', () => {
  async function holding() {
    const world = createWorld()
    const token = await world.authenticate.issueToken({ username: 'admin', password: 'root' }, somebody)
    const ended: string[] = []
    const hold = (scope: 'status' | 'admin') => world.authenticate.hold(token, scope, () => void ended.push(scope))
    return { ...world, world, ended, hold }
  }

  test.each([
    ['the app is removed', [shop], ['status', 'admin']],
    ['the app’s password is changed', [shop, { ...admin, passwordHashes: ['hash of other'] }], ['status', 'admin']],
    ['the app loses that scope', [shop, { ...admin, scopes: ['status'] as const }], ['admin']],
    ['another app is removed', [admin], []],
  ])('ends when %s, and not before', async (_when, apps, seen) => {
    const { authenticate, hold, ended } = await holding()
    await hold('status')
    await hold('admin')
    authenticate.replaceApps([shop, admin])
    expect(ended).toEqual([])
    authenticate.replaceApps(apps)
    authenticate.replaceApps(apps)
    expect(ended).toEqual(seen)
  })

  test('ends when the token expires', async () => {
    const { authenticate, hold, ended, world } = await holding()
    await hold('status')
    world.nowMs += 3_599_999
    authenticate.endExpired()
    expect(ended).toEqual([])
    world.nowMs += 1
    authenticate.endExpired()
    expect(ended).toEqual(['status'])
  })

  test('does not end after it was released', async () => {
    const { authenticate, hold, ended } = await holding()
    const release = await hold('status')
    release()
    authenticate.replaceApps([])
    expect(ended).toEqual([])
  })

  test('ends at once if access has already ended', async () => {
    const { authenticate, hold, ended } = await holding()
    authenticate.replaceApps([])
    await hold('status')
    expect(ended).toEqual(['status'])
  })
})

test('only a token that this relay signed is accepted', async () => {
  const { authenticate } = createWorld()
  for (const token of ['', 'x', 'a.b.c', 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJzaG9wIn0.']) {
    await expect(authenticate.authorize(token, 'status')).rejects.toEqual(unauthorized)
  }
})

test('P13: a token issued while the clock was ahead is invalid after the clock was corrected', async () => {
  const world = createWorld()
  const { authenticate } = world
  const [known, unseen] = [
    await authenticate.issueToken({ username: 'shop', password: 'secret' }, somebody),
    await authenticate.issueToken({ username: 'admin', password: 'root' }, somebody),
  ]
  let ended = 0
  await authenticate.hold(known, 'status', () => void ended++)
  world.nowMs -= 29_000
  expect(await authenticate.authorize(known, 'status')).toEqual(shop)
  world.nowMs -= 3_600_000
  authenticate.endExpired()
  expect([ended, authenticate.recognize(known, 'status')]).toEqual([1, null])
  for (const token of [known, unseen]) await expect(authenticate.authorize(token, 'status')).rejects.toEqual(unauthorized)
})
