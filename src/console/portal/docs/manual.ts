import type { Problem } from '../../problems/verdict.ts'
import { type Address, type AddressTag, html, link, type Markup } from '../html.ts'

/** The pages of the manual that the portal shows: the name of the file in `docs/` without `.md`, and the title. Sorted for reading. */
export const MANUAL = [
  ['operating', 'Operating'],
  ['upgrading', 'Upgrading'],
  ['runbooks', 'Runbooks'],
  ['configuration', 'Configuration'],
  ['carrier', 'The carrier'],
  ['integrating', 'Integrating an app'],
  ['api', 'Using the API'],
  ['feed', 'The feed'],
  ['endpoints', 'Endpoints'],
  ['scaling', 'Scaling'],
  ['domain', 'The domain'],
  ['faults', 'Faults'],
  ['performance', 'Performance'],
  ['architecture', 'Architecture'],
  ['merge-proof', 'Why the merge is right'],
] as const

export type ManualPage = (typeof MANUAL)[number][0]

export function manualPage(name: string): ManualPage | null {
  return MANUAL.find(([page]) => page === name)?.[0] ?? null
}

/** The pictures in these pages, by their names in `docs/`. */
export const PICTURES: readonly string[] = ['polling.svg']

/** The part of the manual about each problem: its page, the id of its heading, and the text of the link. */
export const RUNBOOKS: Readonly<Record<Problem['kind'], readonly [page: ManualPage, heading: string, name: string]>> = {
  not_ready: ['runbooks', 'the-relay-is-not-ready', 'the relay is not ready'],
  credentials_refused: ['runbooks', 'credentials_refused', 'refused credentials'],
  carrier_failing: ['runbooks', 'carrier_failing', 'the carrier fails'],
  pushes_silent: ['runbooks', 'pushes_silent', 'pushes are silent'],
  pushes_lossy: ['runbooks', 'pushes_lossy', 'pushes are lost'],
  silence_over: ['runbooks', 'parcels-that-no-push-has-named', 'parcels that no push has named'],
  pushes_refused: ['runbooks', 'refused-pushes', 'refused pushes'],
  endpoint_failing: ['runbooks', 'endpoint_failing', 'a webhook fails'],
  endpoint_disabled: ['runbooks', 'endpoint_disabled', 'a webhook is disabled'],
  operator_unheard: ['runbooks', 'operators-are-not-told', 'operators are not told'],
  disk_full: ['runbooks', 'disk_full', 'the disk is full'],
  disk_low: ['runbooks', 'disk_low', 'the disk fills'],
  backup_failing: ['runbooks', 'backup_failed', 'a backup fails'],
  clock_doubted: ['runbooks', 'clock_doubted', 'the clock may be wrong'],
  quarantined: ['runbooks', 'pushes_quarantined', 'pushes in quarantine'],
  certificate_expired: ['runbooks', 'certificate_expiring', 'a certificate expires'],
  certificate_expiring: ['runbooks', 'certificate_expiring', 'a certificate expires'],
  keys_lost: ['runbooks', 'keys-are-lost', 'keys are lost'],
  pushes_unaccepted: ['runbooks', 'a-signature-does-not-match', 'a signature does not match'],
  role_missing: ['runbooks', 'a-role-is-missing', 'a role is missing'],
  clock_off: ['runbooks', 'clock_doubted', 'the clock may be wrong'],
  open_files: ['runbooks', 'too-few-files-may-be-open', 'too few files may be open'],
  deliveries_unwritten: ['runbooks', 'deliveries-cannot-be-written-down', 'deliveries cannot be written down'],
  reload_failed: ['runbooks', 'reload_failed', 'a reload fails'],
  polls_behind: ['runbooks', 'polls-fall-behind', 'polls fall behind'],
  endpoint_behind: ['runbooks', 'an-endpoint-falls-behind', 'an endpoint falls behind'],
  wal_grows: ['runbooks', 'the-write-ahead-log-grows', 'the write-ahead log grows'],
  backup_old: ['runbooks', 'a-backup-is-missing-or-old', 'a backup is missing or old'],
  retention_stopped: ['runbooks', 'retention-does-not-run', 'retention does not run'],
  retention_held: ['runbooks', 'retention_held', 'retention is held back'],
  erasure_pending: ['runbooks', 'the-store-may-hold-erased-data', 'the store may hold erased data'],
  settings_differ: ['runbooks', 'settings-differ', 'settings differ'],
}

/** Makes the link to the part of the manual about a problem. */
export function runbookLink(to: AddressTag, kind: Problem['kind']): Markup {
  const [page, heading, name] = RUNBOOKS[kind]
  const address: Address = { path: `${to`/docs/${page}`.path}#${heading}` }
  return html`<p>${link(address, `Runbook: ${name}`)}</p>`
}
