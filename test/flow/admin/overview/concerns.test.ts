import { expect, test } from 'vitest'
import { createConcerns } from '../../../../src/flow/admin/overview/concerns.ts'
import { WELL } from '../../../support/portal/situation.ts'

const FINE = { state: 'ok', message: '' } as const

test('a look that failed is not kept: the next call looks again', async () => {
  let looks = 0
  const concerns = createConcerns({
    reads: {
      listParcels: async () => ({ parcels: [], next: null }),
      countBacklog: async () => ({ waiting: 0, retrying: 0, dead: 0, oldestAtMs: null }),
      retentionState: async () => ({ last: null, pass: null }),
    },
    look: async () => {
      looks += 1
      if (looks === 1) throw new Error('the store is busy')
      return { keys: FINE, openFiles: FINE, backups: null, storage: { state: 'clean' } }
    },
    certificates: () => [],
    failedReload: () => null,
    wal: () => ({ bytes: 0, bytesWarn: 1 }),
    carrierAheadMs: () => null,
    clock: { now: () => 0, monotonic: () => 0 },
  })
  await expect(concerns(WELL)).rejects.toThrow('busy')
  await concerns(WELL)
  await concerns(WELL)
  expect(looks).toBe(2)
})
