import type { Problem } from '../../../domain/admin/verdict.ts'
import { type Address, type AddressTag, link } from '../addresses.ts'
import { html, type Markup } from '../html.ts'
import type { ManualPage } from './manual.ts'

/** The part of the manual about each problem: its page, the heading's id, and the text of the link. */
export const RUNBOOKS: Readonly<Record<Problem['kind'], readonly [page: ManualPage, heading: string, name: string]>> = {
  not_ready: ['operating', 'troubleshooting', 'the relay is not ready'],
  credentials_refused: ['operating', 'troubleshooting', 'refused credentials'],
  carrier_failing: ['operating', 'troubleshooting', 'the carrier fails'],
  pushes_silent: ['operating', 'pushes-are-silent', 'pushes are silent'],
  endpoint_failing: ['operating', 'an-endpoint-is-failing', 'a webhook fails'],
  endpoint_disabled: ['endpoints', 'when-an-endpoint-fails', 'a webhook is disabled'],
  disk_full: ['operating', 'when-the-disk-is-full', 'the disk is full'],
  disk_low: ['operating', 'when-the-disk-is-full', 'the disk fills'],
  backup_failing: ['operating', 'when-a-backup-fails', 'a backup fails'],
  quarantined: ['operating', 'pushes-in-quarantine', 'pushes in quarantine'],
  settings_differ: ['scaling', 'running-replicas', 'running replicas'],
}

/** The link to the part of the manual about a problem. */
export function runbookLink(to: AddressTag, kind: Problem['kind']): Markup {
  const [page, heading, name] = RUNBOOKS[kind]
  const address: Address = { path: `${to`/docs/${page}`.path}#${heading}` }
  return html`<p>${link(address, `Runbook: ${name}`)}</p>`
}
