import { expect, test } from 'vitest'
import { createOverview, createReadTraffic, type OverviewPorts } from '../../../../src/console/overview/overview.ts'
import type { DiskRoom } from '../../../../src/core/domain/admin/disk-room.ts'
import { CARRIER } from '../../../support/network/carrier-state.ts'
import { WELL } from '../../../support/portal/situation.ts'
import { HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

function overviewOf(
  { reads, writes, now }: Awaited<ReturnType<typeof openStore>>,
  disk: DiskRoom | null,
  unstored = new Map<string, number>(),
  more: Partial<Pick<OverviewPorts, 'reads' | 'write'>> = {},
) {
  return createOverview({
    reads,
    write: writes,
    counts: () => reads.counts(now()),
    carrier: { state: () => CARRIER },
    otherClocks: () => ({ carrierAheadMs: null, machineAheadMs: null }),
    readiness: async () => ({ ready: true, reasons: [] }),
    disk: () => disk,
    unstored: { sinceMs: (subject) => unstored.get(subject) ?? null },
    readTraffic: createReadTraffic({ reads, clock: { now } }),
    listReplicas: async () => [],
    backups: () => ({ failing: null, last: null }),
    refused: async () => [],
    concerns: async () => [],
    clock: { now },
    stalled: async () => null,
    webhook: async () => ({ path: '/', misdirected: [] }),
    ...more,
  })
}

test.each(engines)('a situation has the missed pushes of each hour of the last day on $name', async (engine) => {
  const store = await openStore(NOON, engine)
  const additions = [
    { fromMs: NOON - 3 * HOUR_MS, kind: 'missed', counts: { '5m': 2, later: 3 } },
    { fromMs: NOON - 30 * HOUR_MS, kind: 'missed', counts: { later: 9 } },
  ] as const
  await store.writes.addTallies({ by: 'one', number: 1, additions })
  const { missedByHour } = await overviewOf(store, null).read()
  expect(missedByHour).toHaveLength(24)
  expect(missedByHour.filter(({ count }) => count > 0)).toEqual([{ fromMs: NOON - 3 * HOUR_MS, count: 5 }])
})

test.each(engines)('a full disk is full since its last event, not since a trouble that has ended, on $name', async (engine) => {
  const store = await openStore(NOON, engine)
  const room = { freeBytes: 5, freeBytesMin: 10 }
  const unstored = new Map<string, number>()
  const { read } = overviewOf(store, { ...room, totalBytes: 100, storeBytes: 1, path: '/data/relay.db' }, unstored)
  const { beginTrouble, endTrouble } = store.writes
  const began = { event: 'disk_full', ...room } as const
  expect(await read()).toMatchObject({ diskSinceMs: null })
  await beginTrouble({ subject: 'disk full', event: began, nowMs: NOON })
  expect(await read()).toMatchObject({ diskSinceMs: NOON })
  const ended = { event: 'disk_usable', freeBytes: 90, until: new Date(NOON + 1000).toISOString() } as const
  await endTrouble({ subject: 'disk full', event: ended, nowMs: NOON + 1000 })
  expect(await read()).toMatchObject({ diskSinceMs: null })
  await beginTrouble({ subject: 'disk full', event: began, nowMs: NOON + 5000 })
  expect(await read()).toMatchObject({ diskSinceMs: NOON + 5000 })
  unstored.set('disk full', NOON + 9000)
  expect(await read()).toMatchObject({ diskSinceMs: NOON + 9000 })
})

test('pushes are lossy since operators were told so, unless pushes were trusted in between', async () => {
  const store = await openStore(NOON)
  const toldAt = new Map<string, number>()
  let health: 'lossy' | 'healthy' = 'lossy'
  const listOperatorEvents: typeof store.reads.listOperatorEvents = async ({ event }) => {
    const atMs = toldAt.get(event ?? '')
    return atMs === undefined ? [] : [{ id: 1, atMs, event: event ?? '', detail: {} }]
  }
  const { read } = overviewOf(store, null, new Map(), {
    reads: { ...store.reads, listOperatorEvents },
    write: { ...store.writes, pushChannel: async () => ({ ...WELL.pushes, health }) },
  })
  expect(await read()).toMatchObject({ lossySinceMs: null })
  toldAt.set('pushes_lossy', NOON)
  expect(await read()).toMatchObject({ lossySinceMs: NOON })
  toldAt.set('pushes_trusted', NOON + 1000)
  expect(await read()).toMatchObject({ lossySinceMs: null })
  toldAt.set('pushes_lossy', NOON + 2000)
  expect(await read()).toMatchObject({ lossySinceMs: NOON + 2000 })
  health = 'healthy'
  expect(await read()).toMatchObject({ lossySinceMs: null })
})
