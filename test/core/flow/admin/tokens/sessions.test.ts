import { expect, test } from 'vitest'
import { type App, createAuthenticate, type VerifiedToken, type Visitor } from '../../../../../src/core/flow/admin/tokens/authenticate.ts'
import { createTokens } from '../../../../../src/core/http/server/tokens.ts'
import { keyringOf } from '../../../../support/network/token-keyring.ts'

const anna: App = { username: 'anna', passwordHashes: ['secret'], scopes: ['status'] }
const HOUR_MS = 3_600_000
const START = 1_700_000_000_000
const somebody: Visitor = { network: '203.0.113.1', isThere: () => true, admit: async () => async () => undefined }

/** Replicas of one relay: each with a memory of its own, on one store and one clock. `restore`: they were restarted after a restore at that time. */
function createWorld() {
  const world = { nowMs: START }
  const clock = { now: () => world.nowMs, monotonic: () => world.nowMs }
  const tokens = createTokens({ keyring: keyringOf(Buffer.alloc(32, 7)), clock, audience: 'parcel-relay-portal' })
  const stored = new Set<string>()
  let ids = 0
  const replica = (beforeMs = 0) =>
    createAuthenticate(
      {
        tokens,
        verifyPassword: async (hash, password) => hash === password,
        digestPassword: (hash, password) => `${hash} ${password}`,
        rightPasswords: new Map<string, string>(),
        verified: new Map<string, VerifiedToken>(),
        clock,
        ended: {
          makeId: () => `session-${++ids}`,
          end: async ({ session }) => void stored.add(session),
          among: async (sessions) => sessions.filter((session) => stored.has(session)),
          beforeMs,
        },
      },
      { apps: [anna], tokenLifetimeMs: HOUR_MS, sessionMaxMs: 12 * HOUR_MS, dummyHash: 'nobody' },
    )
  return Object.assign(world, { tokens, replica })
}

const logIn = (at: ReturnType<ReturnType<typeof createWorld>['replica']>) =>
  at.issueToken({ username: 'anna', password: 'secret' }, somebody)

test('a renewal keeps the id of the session, so none of its tokens survives a log out', async () => {
  const world = createWorld()
  const [here, there] = [world.replica(), world.replica()]
  const tokens = [await logIn(here)]
  for (let times = 0; times < 3; times++) {
    world.nowMs += HOUR_MS / 2
    const session = await here.continueSession(tokens.at(-1) ?? '')
    expect(session?.id).toBe('session-1')
    tokens.push(session?.renewed ?? '')
  }
  const other = await logIn(there)
  // The newest tokens are valid at both replicas, until an older one of the session logs out.
  for (const at of [here, there]) expect(await at.continueSession(tokens[3] ?? '')).not.toBeNull()
  await here.endSession(tokens[2] ?? '')
  for (const at of [here, there, world.replica()]) for (const token of tokens.slice(2)) expect(await at.continueSession(token)).toBeNull()
  expect(await here.continueSession(other)).not.toBeNull()
})

test('a token without an id is ended by its digest, and so are its renewals', async () => {
  const world = createWorld()
  const [here, there] = [world.replica(), world.replica()]
  const [first, second] = [await logIn(here), await logIn(here)]
  const [old, spared] = await Promise.all(
    [first, second].map(async (token) => {
      const claims = await world.tokens.verify(token)
      if (claims === null) throw new Error('the token is not valid')
      const loggedInAtMs = (claims.loggedInAtMs ?? 0) - (token === first ? 1000 : 2000)
      return await world.tokens.sign({ ...claims, loggedInAtMs, session: null }, HOUR_MS)
    }),
  )
  world.nowMs += HOUR_MS / 2
  const renewed = (await here.continueSession(old ?? ''))?.renewed ?? ''
  expect(await there.continueSession(renewed)).not.toBeNull()
  await here.endSession(old ?? '')
  for (const at of [here, there]) for (const token of [old ?? '', renewed]) expect(await at.continueSession(token)).toBeNull()
  expect(await there.continueSession(spared ?? '')).not.toBeNull()
})

test('a restore ends all earlier sessions, and no later one', async () => {
  const world = createWorld()
  const before = await logIn(world.replica())
  world.nowMs += 60_000
  const restored = world.replica(world.nowMs)
  expect(await restored.continueSession(before)).toBeNull()
  const later = await logIn(restored)
  expect(await restored.continueSession(later)).not.toBeNull()
})

test('a stream ends at once where its session is logged out, elsewhere at the next look', async () => {
  const world = createWorld()
  const [here, there] = [world.replica(), world.replica()]
  const [token, other] = [await logIn(here), await logIn(here)]
  const ended: string[] = []
  await here.hold(token, 'status', () => ended.push('here'))
  await there.hold(token, 'status', () => ended.push('there'))
  await there.hold(other, 'status', () => ended.push('other'))
  await here.endSession(token)
  expect(ended).toEqual(['here'])
  await there.endLoggedOut()
  expect(ended).toEqual(['here', 'there'])
  await there.hold(token, 'status', () => ended.push('late'))
  expect(ended).toEqual(['here', 'there', 'late'])
})
