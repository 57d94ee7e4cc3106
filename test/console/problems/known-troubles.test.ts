import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Problem } from '../../../src/console/problems/verdict.ts'
import { CHECK_NAMES, type CheckName } from '../../../src/upkeep/check/check.rules.ts'
import { EVENT_NAMES, PROBLEM_KINDS } from '../../support/portal/documented-kinds.ts'

/** The kinds of problems of `status` and the overview page that tell the trouble, or a sentence why none does. */
type Told = readonly Problem['kind'][] | string

const END = 'It reports that a trouble is over.'
const PAST = 'It reports what has happened, and what nobody can mend any more.'
const ORDER = 'It reports how an order of an operator ended, to whoever gave it.'
const TRIES = 'The check tries it by asking somebody else, which a look at the status must not do.'

const EVENTS: Readonly<Record<string, Told>> = {
  endpoint_failing: ['endpoint_failing'],
  endpoint_recovered: END,
  endpoint_disabled: ['endpoint_disabled'],
  endpoint_removed: PAST,
  credentials_refused: ['credentials_refused'],
  credentials_accepted: END,
  carrier_failing: ['carrier_failing'],
  carrier_recovered: END,
  pushes_silent: ['pushes_silent'],
  pushes_lossy: ['pushes_lossy'],
  pushes_trusted: END,
  pushes_quarantined: ['quarantined'],
  pushes_not_understood: ['quarantined', 'pushes_silent'],
  pushes_understood: END,
  disk_low: ['disk_low'],
  disk_full: ['disk_full'],
  disk_usable: END,
  disk_recovered: END,
  clock_doubted: ['clock_doubted'],
  clock_trusted: END,
  reloaded: ['reload_failed'],
  reload_failed: ['reload_failed'],
  certificate_expiring: ['certificate_expiring', 'certificate_expired'],
  store_restored: PAST,
  backup_failed: ['backup_failing'],
  backup_recovered: END,
  job_ended: ORDER,
  retention_held: ['retention_held'],
  retention_gave_up: PAST,
  watchdogs_held: ['watchdogs_held'],
  watchdogs_resumed: END,
}

const ALERTS: Readonly<Record<string, Told>> = {
  RelayDown: 'A relay that does not run answers nothing: the command says that it cannot be reached.',
  RelayRestarts: 'A relay does not know how often it was started within an hour.',
  RelayStoreUnreadable: ['not_ready'],
  RelayPushesUnanswered: ['not_ready', 'disk_full', 'pushes_refused'],
  RelayDiskFull: ['disk_full'],
  RelayDiskLow: ['disk_low'],
  RelayWalGrows: ['wal_grows'],
  RelayCommitsSlow:
    'It is a share of the commits of minutes, which only Prometheus keeps. What cannot be stored in time is told as pushes_refused.',
  RelayRoleMissing: ['role_missing'],
  RelayPushesSilent: ['pushes_silent'],
  RelaySignaturesRefused: 'Any stranger can send such pushes: they are a caveat beside the verdict, until no other push is accepted.',
  RelayNoPushAccepted: ['pushes_unaccepted'],
  RelayPushesQuarantined: ['quarantined'],
  RelayCredentialsRefused: ['credentials_refused'],
  RelayCarrierFailing: ['carrier_failing'],
  RelayPollsBehind: ['polls_behind'],
  RelayCallsSpent: ['polls_behind'],
  RelayEndpointFailing: ['endpoint_failing'],
  RelayEndpointDisabled: ['endpoint_disabled'],
  RelayEndpointBehind: ['endpoint_behind'],
  RelayDeliveriesGivenUp: 'It reports a rise within an hour. The page of the endpoint shows what was given up until it is replayed.',
  RelayCertificateExpiring: ['certificate_expiring'],
  RelayCertificateExpires: ['certificate_expiring', 'certificate_expired'],
  RelayEndpointCertificateExpiring: ['certificate_expiring'],
  RelayEndpointCertificateExpires: ['certificate_expiring', 'certificate_expired'],
  RelayClockDoubted: ['clock_doubted'],
  RelayRetentionStopped: ['retention_stopped'],
  RelayBackupFails: ['backup_failing'],
  RelayBackupOld: ['backup_old'],
  RelayBackupMissing: 'Whether backups are wanted is for the operator to say. Once one was made, a missing one is told as backup_old.',
}

const CHECKS: Readonly<Record<CheckName, Told>> = {
  relay: 'It says which version runs.',
  config: ['reload_failed'],
  keys: ['keys_lost'],
  store: ['not_ready'],
  disk: ['disk_full', 'disk_low'],
  files: 'Who else may read the files is a warning about how the relay was set up, not a trouble that begins.',
  open_files: ['open_files'],
  ports: 'Only a start can be kept from listening. A relay that answers does listen.',
  certificate: ['certificate_expired', 'certificate_expiring', 'reload_failed'],
  credentials: ['credentials_refused', 'carrier_failing'],
  question: ['carrier_failing'],
  clock: ['clock_off', 'clock_doubted'],
  push: TRIES,
  endpoint: TRIES,
  retention: ['retention_stopped', 'retention_held'],
  erasure: ['erasure_pending'],
  backup: ['backup_failing', 'backup_old'],
}

const PROBLEMS = new Set(PROBLEM_KINDS)

function unknownKinds(table: Readonly<Record<string, Told>>): readonly string[] {
  return Object.values(table).flatMap((told) => (typeof told === 'string' ? [] : told.filter((kind) => !PROBLEMS.has(kind))))
}

function alerts(): readonly string[] {
  return [...readFileSync('ops/prometheus/alerts.yaml', 'utf8').matchAll(/alert: (\w+)/g)].map(([, alert = '']) => alert)
}

test.each([
  ['event', EVENT_NAMES, EVENTS],
  ['alert', alerts(), ALERTS],
  ['line of the check', CHECK_NAMES, CHECKS],
] as const)('S22: each kind of %s is told by status and overview, or a reason says why not', (_what, kinds, table) => {
  expect(kinds.length).toBeGreaterThan(10)
  expect(Object.keys(table).toSorted()).toEqual([...kinds].toSorted())
  expect(unknownKinds(table)).toEqual([])
})
