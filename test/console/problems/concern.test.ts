import { expect, test } from 'vitest'
import { type ConcernFacts, concernOfVerdict, concernsOf, concernsOfAll, localConcerns } from '../../../src/console/problems/concern.ts'
import { type Concern, type ConcernKind, createConcernTable } from '../../../src/console/problems/concern-kinds.ts'
import { explainProblem } from '../../../src/console/problems/explain-problem.ts'
import { type Problem, problemsOf } from '../../../src/console/problems/verdict.ts'
import { concernsOfHeld } from '../../../src/insight/watchdogs/watchdogs.problems.ts'
import { failed, ok, warning } from '../../../src/upkeep/check/check.rules.ts'
import { concernsOfStorage } from '../../../src/upkeep/erasure/erasure.rules.ts'
import { concernsOfRetention } from '../../../src/upkeep/retention/retention.problems.ts'
import { WELL } from '../../support/portal/situation.ts'
import { DAY_MS } from '../../support/runner/constants.ts'

const NOW = 1_000 * DAY_MS
const HOUR_MS = 3_600_000
const report = {
  startedAtMs: NOW - HOUR_MS,
  endedAtMs: NOW - HOUR_MS,
  removed: {},
  held: {},
  givenUp: {},
  heldSinceMs: null,
  endpoints: [],
  isClockDoubted: false,
}
const TIMES = { startedAtMs: NOW - 100 * DAY_MS, nowMs: NOW }
const FINE: ConcernFacts = {
  startedAtMs: NOW - 100 * DAY_MS,
  certificates: [{ shownBy: 'public listener', endpoint: null, untilMs: NOW + 14 * DAY_MS }],
  failedReload: null,
  refused: [{ cause: 'signature', count: 20, fromMs: NOW - 1000, untilMs: NOW }],
  lastPushAtMs: NOW - HOUR_MS,
  callsSpent: null,
  replicas: [
    { roles: ['poller'], startedAtMs: 1, lastSeenAtMs: NOW - 9999 },
    { roles: ['janitor'], startedAtMs: 2, lastSeenAtMs: NOW },
  ],
  carrierAheadMs: 59_000,
  pollDueAtMs: NOW - HOUR_MS + 1,
  pollsMadeFromMs: 0,
  backlogs: [{ endpoint: 'shop', oldestAtMs: NOW - 899_999 }],
  undelivered: { sinceMs: NOW - 4999, results: 3 },
  wal: { bytes: 9, bytesWarn: 9 },
  offered: [
    ...concernOfVerdict('keys_lost', '', ok('')),
    ...concernOfVerdict('open_files', '', warning('')),
    ...concernOfVerdict('backup_old', '', warning('')),
    ...concernsOfRetention(report, TIMES),
    ...concernsOfStorage({ state: 'clean' }),
  ],
}

/** For each kind, the least change that makes it so. */
const TROUBLES: Readonly<Record<ConcernKind, Partial<ConcernFacts>>> = {
  certificate_expired: { certificates: [{ shownBy: 'public listener', endpoint: null, untilMs: NOW }] },
  keys_lost: { offered: concernOfVerdict('keys_lost', 'The keys cannot be used', failed('The key file is empty')) },
  pushes_unaccepted: { refused: [{ cause: 'signature', count: 21, fromMs: NOW - 1000, untilMs: NOW }] },
  role_missing: {
    replicas: [
      { roles: ['poller'], startedAtMs: 1, lastSeenAtMs: NOW - 10_000 },
      { roles: ['janitor'], startedAtMs: 2, lastSeenAtMs: NOW },
    ],
  },
  clock_off: { carrierAheadMs: -60_000 },
  open_files: { offered: concernOfVerdict('open_files', 'Too few files may be open', failed('The process may open 64 files')) },
  deliveries_unwritten: { undelivered: { sinceMs: NOW - 5000, results: 3 } },
  certificate_expiring: { certificates: [{ shownBy: 'relay at shop', endpoint: 'shop', untilMs: NOW + 14 * DAY_MS - 1 }] },
  reload_failed: { failedReload: { atMs: NOW, problems: ['listen.public.tls: the key does not fit'] } },
  polls_behind: { pollDueAtMs: NOW - HOUR_MS },
  endpoint_behind: { backlogs: [{ endpoint: 'shop', oldestAtMs: NOW - 900_000 }] },
  wal_grows: { wal: { bytes: 10, bytesWarn: 9 } },
  backup_old: { offered: concernOfVerdict('backup_old', 'No recent backup is known', failed('The newest backup is 9 days old')) },
  retention_stopped: { offered: concernsOfRetention({ ...report, endedAtMs: NOW - 6 * HOUR_MS - 1 }, TIMES) },
  retention_held: { offered: concernsOfRetention({ ...report, held: { deliveries: 3 }, heldSinceMs: NOW - 31 * DAY_MS }, TIMES) },
  watchdogs_held: { offered: concernsOfHeld({ sinceMs: NOW - HOUR_MS, held: 3 }, NOW) },
  erasure_pending: { offered: concernsOfStorage({ state: 'pending', because: 'A search has not ended.' }) },
}

test('a relay at the edge of each trouble has none', () => {
  expect(concernsOf(FINE, NOW)).toEqual([])
})

const { describe } = createConcernTable([])

test.each(Object.entries(TROUBLES))('%s is the only concern, says what to do, and is a problem of the verdict', (kind, trouble) => {
  const concerns = describe(concernsOf({ ...FINE, ...trouble }, NOW))
  expect(concerns.map((concern) => concern.kind)).toEqual([kind])
  const [problem] = problemsOf({ ...WELL, concerns })
  if (problem === undefined) throw new Error('there is none')
  const { title, evidence, todo } = explainProblem(problem, { ...WELL, concerns }, NOW)
  expect([title.endsWith('.'), evidence.length > 0, todo.length > 0]).toEqual([false, true, true])
})

test('what is urgent comes before failing endpoints, and what can wait after them', () => {
  const concerns = describe(concernsOf({ ...FINE, ...TROUBLES.certificate_expired, ...TROUBLES.wal_grows }, NOW))
  const kinds = problemsOf({ ...WELL, concerns, pushes: { ...WELL.pushes, health: 'silent' } }).map(({ kind }: Problem) => kind)
  expect(kinds).toEqual(['certificate_expired', 'pushes_silent', 'wal_grows'])
})

test('kinds of wings stand before the kind of the core that they name, or after all', () => {
  const known = { canWait: false, runbook: ['', ''] } as const
  const table = createConcernTable([{ late: known }, { early: { ...known, before: 'pushes_unaccepted' } }])
  const kinds = [...table.known.keys()]
  expect([kinds[0], kinds[1], kinds[2], kinds.at(-1)]).toEqual(['certificate_expired', 'early', 'pushes_unaccepted', 'late'])
})

test('used-up calls are a concern, because the polls that they put off are not overdue', () => {
  const concerns = concernsOf({ ...FINE, callsSpent: 1200 }, NOW)
  expect(concerns).toMatchObject([{ kind: 'polls_behind', title: "Today's calls to the carrier are used up" }])
  expect(concerns[0]?.evidence[0]).toContain('All 1,200 calls')
})

test('polls that fell due in a stop or in quiet hours are no lag until an hour after that', () => {
  const due = { ...FINE, pollDueAtMs: NOW - 10 * HOUR_MS }
  expect(concernsOf({ ...due, pollsMadeFromMs: NOW - HOUR_MS + 1 }, NOW)).toEqual([])
  expect(concernsOf({ ...due, pollsMadeFromMs: NOW - HOUR_MS }, NOW)).toMatchObject([{ kind: 'polls_behind' }])
})

test('a relay that starts has time to take its roles, to make a pass and to be pushed to', () => {
  const starting = {
    ...FINE,
    startedAtMs: NOW - 9999,
    offered: concernsOfRetention(null, { startedAtMs: NOW - 9999, nowMs: NOW }),
    replicas: [{ roles: [], startedAtMs: NOW - 9999, lastSeenAtMs: NOW }],
  }
  expect(concernsOf(starting, NOW)).toEqual([])
  expect(concernsOf({ ...FINE, ...TROUBLES.pushes_unaccepted, lastPushAtMs: NOW }, NOW)).toEqual([])
})

test('the concerns of all replicas name theirs, and what all share is told once', () => {
  const { certificates, failedReload } = { ...FINE, ...TROUBLES.certificate_expired, ...TROUBLES.reload_failed }
  const local = localConcerns({ certificates, failedReload, carrierAheadMs: -60_000 }, NOW)
  const replicas = [
    { id: 1, name: 'a/1', concerns: [] },
    { id: 2, name: 'b/2', concerns: local },
    { id: 3, name: 'c/3', concerns: local },
  ]
  const seenAt = (me: number, mine: readonly Concern[]) =>
    describe(concernsOfAll(mine, replicas, me)).map(({ kind, replica }) => `${kind} ${replica}`)
  const all = ['certificate_expired b/2', 'certificate_expired c/3', 'clock_off null', 'reload_failed b/2', 'reload_failed c/3']
  expect(seenAt(1, [])).toEqual(all)
  expect(seenAt(2, local)).toEqual(all)
  expect(concernsOfAll(local, replicas.slice(1, 2), 2)).toEqual(local)
})

test('a replica tells the others at most twenty concerns, and no long lines', () => {
  const certificates = Array.from({ length: 30 }, () => ({ shownBy: 'relay at shop', endpoint: 'shop', untilMs: NOW }))
  expect(localConcerns({ certificates, failedReload: null, carrierAheadMs: null }, NOW)).toHaveLength(20)
  const failedReload = { atMs: NOW, problems: Array.from({ length: 9 }, () => 'x'.repeat(1000)) }
  const [told] = localConcerns({ certificates: [], failedReload, carrierAheadMs: null }, NOW)
  expect(told?.evidence.map((line) => line.length)).toEqual([301, 301, 301, 301, 301])
})
