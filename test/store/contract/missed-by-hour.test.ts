import { expect, test } from 'vitest'
import { createOverview } from '../../../src/flow/admin/overview/overview.ts'
import { createReadTraffic } from '../../../src/flow/admin/overview/traffic.ts'
import { CARRIER } from '../../support/network/carrier-state.ts'
import { HOUR_MS, NOON } from '../../support/runner/constants.ts'
import { engines } from '../../support/store/engines.ts'
import { openStore } from '../../support/store/write-side.ts'

test.each(engines)('a situation has the missed pushes of each hour of the last day on $name', async (engine) => {
  const { writes, reads, now } = await openStore(NOON, engine)
  const additions = [
    { fromMs: NOON - 3 * HOUR_MS, kind: 'missed', counts: { '5m': 2, later: 3 } },
    { fromMs: NOON - 30 * HOUR_MS, kind: 'missed', counts: { later: 9 } },
  ] as const
  await writes.addTallies({ by: 'one', number: 1, additions })
  const { read } = createOverview({
    reads,
    write: writes,
    counts: () => reads.counts(now()),
    carrier: { state: () => CARRIER },
    otherClocks: () => ({ carrierAheadMs: null, machineAheadMs: null }),
    readiness: async () => ({ ready: true, reasons: [] }),
    disk: () => null,
    readTraffic: createReadTraffic({ reads, clock: { now } }),
    listReplicas: async () => [],
    backups: () => ({ failing: null, last: null }),
    refused: async () => [],
    concerns: async () => [],
    clock: { now },
    webhook: async () => ({ path: '/', misdirected: [] }),
  })
  const { missedByHour } = await read()
  expect(missedByHour).toHaveLength(24)
  expect(missedByHour.filter(({ count }) => count > 0)).toEqual([{ fromMs: NOON - 3 * HOUR_MS, count: 5 }])
})
