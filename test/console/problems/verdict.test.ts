import { describe, expect, test } from 'vitest'
import {
  areOnlyMisunderstood,
  doPollsReplacePushes,
  isNew,
  isWarning,
  pastSilenceOf,
  problemsOf,
  type Situation,
} from '../../../src/console/problems/verdict.ts'
import { newHealth } from '../../../src/core/domain/delivery/endpoint-health.ts'
import type { EndpointState } from '../../../src/core/domain/delivery/endpoint-state.ts'
import { endpointState } from '../../support/delivery/endpoint-state.ts'
import { CARRIER } from '../../support/network/carrier-state.ts'
import { WELL } from '../../support/portal/situation.ts'
import { DAY_MS } from '../../support/runner/constants.ts'

const fine = WELL
const DISK = { freeBytes: 200, freeBytesMin: 100, totalBytes: 1000, storeBytes: 10, path: '/data/relay.db' }
const failing = { ...newHealth, failingSinceMs: 1, probing: { atMs: 2, failed: 1 } }

const endpoint = (change: Partial<EndpointState>) => endpointState({}, change)

const kinds = (situation: Situation) => problemsOf(situation).map(({ kind }) => kind)

test('a relay that works has no problem', () => {
  expect([kinds(fine), kinds({ ...fine, endpoints: [endpoint({})] }), doPollsReplacePushes(fine), isNew(fine)]).toEqual([
    [],
    [],
    true,
    false,
  ])
})

describe.each([
  ['a store that is not ready', { notReady: ['full'] }, 'not_ready'],
  ['a refused password', { carrier: { ...CARRIER, credentials: 'refused' } }, 'credentials_refused'],
  ['a carrier that fails', { carrier: { ...CARRIER, breaker: { state: 'open', failures: 5, restMs: 1000 } } }, 'carrier_failing'],
  ['silent pushes', { pushes: { ...fine.pushes, health: 'silent' } }, 'pushes_silent'],
  ['lost pushes', { pushes: { ...fine.pushes, health: 'lossy' } }, 'pushes_lossy'],
  ['pushes that could not be stored', { refused: [{ cause: 'not_stored', count: 355, fromMs: 1, untilMs: 2 }] }, 'pushes_refused'],
  ['a silence that is over', { pastSilence: { fromMs: 1, toMs: 2 } }, 'silence_over'],
  ['a failing endpoint', { endpoints: [endpoint({ health: failing })] }, 'endpoint_failing'],
  ['an endpoint disabled by its 410', { endpoints: [endpoint({ disabled: 'gone' })] }, 'endpoint_disabled'],
  ['a disk that is low', { disk: { ...DISK, freeBytes: 199 } }, 'disk_low'],
  ['a push in quarantine', { counts: { ...fine.counts, quarantined: 1 } }, 'quarantined'],
] satisfies readonly (readonly [string, Partial<Situation>, string])[])('%s', (_what, change, kind) => {
  test('is the only problem', () => {
    expect(kinds({ ...fine, ...change })).toEqual([kind])
  })
})

test('nine pushes in quarantine are a warning, and ten are graver than a failing endpoint', () => {
  const judged = (quarantined: number) =>
    problemsOf({ ...fine, counts: { ...fine.counts, quarantined }, endpoints: [endpoint({ health: failing })] }).map((problem) => [
      problem.kind,
      isWarning(problem),
    ])
  expect(judged(9)).toEqual([
    ['endpoint_failing', false],
    ['quarantined', true],
  ])
  expect(judged(10)).toEqual([
    ['quarantined', false],
    ['endpoint_failing', false],
  ])
})

test('past losses are warnings, and refused pushes that anybody may have sent are no problem', () => {
  const refused = (['not_stored', 'overload', 'signature', 'path', 'size'] as const).map((cause) => ({
    cause,
    count: 9,
    fromMs: 1,
    untilMs: 2,
  }))
  const problems = problemsOf({ ...fine, refused, pastSilence: { fromMs: 1, toMs: 2 } })
  expect(problems.map((problem) => [problem.kind, isWarning(problem)])).toEqual([
    ['silence_over', true],
    ['pushes_refused', true],
  ])
})

test('pushes that could not be stored stop being a problem when all have come again', () => {
  const spell = (again: number) => ({ cause: 'not_stored' as const, count: 9, fromMs: 1, untilMs: 2, comeback: { pushes: 3, again } })
  expect([kinds({ ...fine, refused: [spell(3), spell(2)] }), kinds({ ...fine, refused: [spell(3), spell(3)] })]).toEqual([
    ['pushes_refused'],
    [],
  ])
})

test('a silence is shown as past for a day, unless pushes are silent again', () => {
  const lastSilence = { fromMs: 1000, toMs: 5000 }
  const pushes = { ...fine.pushes, lastSilence }
  expect([pastSilenceOf(pushes, 5000 + DAY_MS - 1), pastSilenceOf(pushes, 5000 + DAY_MS), pastSilenceOf(fine.pushes, 5000)]).toEqual([
    lastSilence,
    null,
    null,
  ])
  expect(kinds({ ...fine, pushes: { ...pushes, health: 'silent' }, pastSilence: lastSilence })).toEqual(['pushes_silent'])
})

test('an endpoint that an operator disabled is no problem, whatever its health was', () => {
  expect(kinds({ ...fine, endpoints: [endpoint({ disabled: 'operator', health: failing })] })).toEqual([])
})

test('polls cannot replace missed pushes while the carrier fails or refuses the login', () => {
  expect(doPollsReplacePushes({ ...fine, carrier: { ...CARRIER, credentials: 'refused' } })).toBe(false)
  expect(doPollsReplacePushes({ ...fine, carrier: { ...CARRIER, breaker: { state: 'open', failures: 5, restMs: 1 } } })).toBe(false)
})

test('a relay without a parcel or a push is new', () => {
  expect(isNew({ ...fine, counts: { ...fine.counts, parcels: 0 }, pushes: { ...fine.pushes, lastPushAtMs: null } })).toBe(true)
})

test('a disk with room is no problem, and a full disk is a problem of its own', () => {
  const full = { disk: { ...DISK, freeBytes: 99 }, notReady: ['disk_full: less than it needs'] }
  expect([
    kinds({ ...fine, disk: DISK }),
    kinds({ ...fine, ...full }),
    kinds({ ...fine, ...full, notReady: [...full.notReady, 'store_lost: relay.db'] }),
  ]).toEqual([[], ['disk_full'], ['disk_full', 'not_ready']])
})

test('a relay that reports a full disk without a measurement is not ready', () => {
  expect(kinds({ ...fine, notReady: ['disk_full: less than it needs'] })).toEqual(['not_ready'])
})

test('silent pushes count as misunderstood if a later push is in quarantine', () => {
  const silent = { ...fine.pushes, health: 'silent' as const, lastPushAtMs: 1000 }
  const heldAt = (receivedAtMs: number) => [
    { reason: 'event_time', count: 2, first: { inboxId: 1, receivedAtMs: 0 }, last: { inboxId: 2, receivedAtMs } },
  ]
  const judged = [
    { pushes: silent, held: heldAt(1001) },
    { pushes: silent, held: heldAt(999) },
    { pushes: silent, held: [] },
    { pushes: fine.pushes, held: heldAt(1001) },
  ].map(areOnlyMisunderstood)
  expect(judged).toEqual([true, false, false, false])
})
