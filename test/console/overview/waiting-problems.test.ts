import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { RUNBOOKS } from '../../../src/console/portal/docs/manual.ts'
import { isWarning, MANY_QUARANTINED, type Problem } from '../../../src/console/problems/verdict.ts'
import { endpointState } from '../../support/delivery/endpoint-state.ts'
import { CONCERNS } from '../../support/relay/routes.ts'

/** The words of docs/operating.md for each problem that can wait. */
const WORDS: Readonly<Partial<Record<Problem['kind'], string>>> = {
  pushes_lossy: 'lost pushes',
  silence_over: 'pushes that were missing or refused and are taken again',
  pushes_refused: 'pushes that were missing or refused and are taken again',
  quarantined: 'fewer than 10 pushes in quarantine',
  disk_low: 'a low disk',
  backup_failing: 'a backup that failed or is old',
  backup_old: 'a backup that failed or is old',
  clock_doubted: 'a clock that jumped ahead',
  settings_differ: 'different settings of replicas',
  certificate_expiring: 'a certificate that expires soon',
  reload_failed: 'a failed reload',
  polls_behind: 'polls or an endpoint that fall behind',
  endpoint_behind: 'polls or an endpoint that fall behind',
  wal_grows: 'a growing write-ahead log',
  retention_stopped: 'retention that does not run or holds data back',
  retention_held: 'retention that does not run or holds data back',
  watchdogs_held: 'watchdogs that are held back',
  erasure_pending: 'erased data that may be left in the files',
}

const disk = { freeBytes: 0, freeBytesMin: 1, totalBytes: 1, storeBytes: 1, path: '' }
const state = endpointState({})
const concern = { kind: 'reload_failed', endpoint: null, replica: null, title: '', sinceMs: null, evidence: [], todo: [] } as const
const concerns = Array.from(CONCERNS.known, ([kind, known]) => ({
  name: kind,
  problem: { kind: concern.kind, concern: { ...concern, ...known } },
}))

/** One problem of each kind; of those that can wait or not, the one that can. */
const PROBLEMS: readonly Problem[] = [
  { kind: 'not_ready', reason: '' },
  { kind: 'credentials_refused' },
  { kind: 'carrier_failing' },
  { kind: 'pushes_silent' },
  { kind: 'pushes_lossy' },
  { kind: 'silence_over', silence: { fromMs: 0, toMs: 1 } },
  { kind: 'pushes_refused', refused: [] },
  { kind: 'endpoint_failing', state },
  { kind: 'endpoint_disabled', state },
  { kind: 'operator_unheard', state },
  { kind: 'quarantined', count: MANY_QUARANTINED - 1 },
  { kind: 'disk_full', disk },
  { kind: 'disk_low', disk },
  { kind: 'backup_failing', sinceMs: 0, reason: '' },
  { kind: 'clock_doubted', doubt: { because: 'jumped', aheadMs: 1 } },
  { kind: 'settings_differ' },
]

test('the manual names exactly the problems that can wait, with which status exits with 0', () => {
  expect(PROBLEMS.map(({ kind }) => kind).toSorted()).toEqual(Object.keys(RUNBOOKS).toSorted())
  const waiting = [
    ...PROBLEMS.filter(isWarning).map(({ kind }) => kind),
    ...concerns.filter(({ problem }) => isWarning(problem)).map(({ name }) => name),
  ]
  expect(Object.keys(WORDS).toSorted()).toEqual(waiting.toSorted())
  const row = readFileSync('docs/operating.md', 'utf8').match(/^\| `status` \|.*$/m)?.[0] ?? ''
  const listed = /What can wait[^:]*: ([^;]*);/.exec(row.replace('`severity`: `warning`', ''))?.[1]?.split(/, (?:and )?/) ?? []
  expect(listed.toSorted()).toEqual([...new Set(Object.values(WORDS))].toSorted())
  expect(isWarning({ kind: 'quarantined', count: MANY_QUARANTINED })).toBe(false)
})
