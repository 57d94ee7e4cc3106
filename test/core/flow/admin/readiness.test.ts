import { expect, test } from 'vitest'
import { StorageFailure } from '../../../../src/core/domain/errors.ts'
import type { MisdirectedPath } from '../../../../src/core/domain/ingest/refused-spells.ts'
import { createReadiness, type ReadinessPorts } from '../../../../src/core/flow/admin/readiness.ts'
import { CARRIER } from '../../../support/network/carrier-state.ts'

type Disk = ReadinessPorts['disk']
const ROOMY: Disk = { trouble: () => null, state: () => ({ freeBytes: 9e9, lost: null }) }

function readinessOf(ping: () => Promise<undefined>, carrier = CARRIER, misdirected: readonly MisdirectedPath[] = [], disk = ROOMY) {
  return createReadiness({
    reads: { ping },
    carrier: { state: () => carrier },
    disk,
    pushHealth: () => ({}) as ReturnType<ReadinessPorts['pushHealth']>,
    misdirected: async () => misdirected,
    lostKeys: async () => null,
    caughtUp: async () => undefined,
  })
}

const refused = Object.assign(new Error('connect ECONNREFUSED 10.1.2.3:5432'), { code: 'ECONNREFUSED' })

test.each([
  ['the network', refused, 'nothing listens there'],
  [
    'PostgreSQL',
    Object.assign(new Error('the database system is shutting down'), { code: '57P03' }),
    'the database is starting or stopping',
  ],
  ['an engine that wraps it', new StorageFailure('the database at 10.1.2.3 does not answer', refused), 'nothing listens there'],
  ['SQLite, in a message from another thread', new Error('SQLITE_FULL: /var/lib/relay.db'), 'the disk is full'],
  ['a rare code', Object.assign(new Error('something at 10.1.2.3'), { code: 'EBADF' }), 'EBADF'],
  ['nothing known', new Error('something at 10.1.2.3'), 'for an unknown reason'],
])('a failing store is reported in words for an error of %s, without the error’s message', async (_whose, error, words) => {
  const readiness = readinessOf(() => Promise.reject(error))
  readiness.storeFails('pushes', error)
  expect(await readiness.read()).toMatchObject({
    ready: false,
    reasons: [`storage_unavailable: pushes cannot be stored (${words})`, `storage_unavailable: answers cannot be read (${words})`],
  })
  readiness.storeWorks('pushes')
  expect((await readiness.read()).reasons).toHaveLength(1)
})

test('at a full disk the reason names what is free: nothing is “nearly full” without a free byte', async () => {
  const full = (freeBytes: number): Disk => ({ trouble: () => 'short', state: () => ({ freeBytes, lost: null }) })
  const reasonsAt = async (freeBytes: number) => (await readinessOf(async () => undefined, CARRIER, [], full(freeBytes)).read()).reasons
  expect(await reasonsAt(0)).toEqual(['disk_full: 0 kB are free where the store is, less than limits.freeSpaceMin'])
  expect(await reasonsAt(5 * 1024 * 1024)).toEqual(['disk_full: 5 MB are free where the store is, less than limits.freeSpaceMin'])
})

test('a 429 of the carrier is shown, unless the carrier refuses the password', async () => {
  const lastFailure = { reason: 'rate_limited', atMs: 2000 } as const
  const readiness = readinessOf(async () => undefined, { ...CARRIER, credentials: 'obtained', lastAnswerAtMs: null, lastFailure })
  expect((await readiness.read()).notes).toMatchObject({ upstream: { state: 'rate_limited', credentials: 'obtained' } })
  const refused = readinessOf(async () => undefined, { ...CARRIER, credentials: 'refused', lastFailure })
  expect((await refused.read()).notes).toMatchObject({ upstream: { state: 'upstream_auth', lastFailure: 'rate_limited' } })
})

test('signed pushes to a wrong path are named, and unsigned requests of scanners are not', async () => {
  const posted = { path: '/webhook/status', isSigned: true, count: 12, firstAtMs: 1000, lastAtMs: 2000 }
  const scanned = { ...posted, path: '/xmlrpc.php', isSigned: false }
  expect((await readinessOf(async () => undefined, CARRIER, [scanned, posted]).read()).notes).toMatchObject({
    upstream: { misdirected: [{ path: '/webhook/status', count: 12, lastAt: '1970-01-01T00:00:02.000Z' }] },
  })
})
