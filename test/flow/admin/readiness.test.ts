import { expect, test } from 'vitest'
import { StorageFailure } from '../../../src/domain/errors.ts'
import type { CarrierState } from '../../../src/domain/polling/carrier-answer.ts'
import { createReadiness, type ReadinessPorts } from '../../../src/flow/admin/readiness.ts'

const carrier: CarrierState = {
  credentials: 'accepted',
  lastAnswerAtMs: null,
  lastFailure: null,
  budget: { waiting: 0, inFlight: 0, callsToday: 0, callsPerDay: 1000 },
  breaker: { state: 'closed', failures: 0, restMs: 0 },
}

function readinessOf(ping: () => Promise<undefined>) {
  return createReadiness({
    reads: { ping },
    carrier: { state: () => carrier },
    disk: { trouble: () => null, state: () => ({ lost: null }) },
    pushHealth: () => ({}) as ReturnType<ReadinessPorts['pushHealth']>,
    lostKeys: async () => null,
    caughtUp: async () => undefined,
  })
}

const refused = Object.assign(new Error('connect ECONNREFUSED 10.1.2.3:5432'), { code: 'ECONNREFUSED' })

test.each([
  ['the network', refused, 'ECONNREFUSED'],
  ['PostgreSQL', Object.assign(new Error('the database system is shutting down'), { code: '57P03' }), '57P03'],
  ['an engine that wraps it', new StorageFailure('the database at 10.1.2.3 does not answer', refused), 'ECONNREFUSED'],
  ['SQLite, in a message from another thread', new Error('SQLITE_FULL: /var/lib/relay.db'), 'SQLITE_FULL'],
  ['nobody', new Error('something at 10.1.2.3'), 'unknown cause'],
])('a store that fails is reported with the code of %s, and with nothing else of its message', async (_whose, error, code) => {
  const readiness = readinessOf(() => Promise.reject(error))
  readiness.storeFails('pushes', error)
  expect(await readiness.read()).toMatchObject({
    ready: false,
    reasons: [`storage_unavailable: pushes cannot be stored (${code})`, `storage_unavailable: answers cannot be read (${code})`],
  })
  readiness.storeWorks('pushes')
  expect((await readiness.read()).reasons).toHaveLength(1)
})
