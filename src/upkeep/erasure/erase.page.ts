import { z } from 'zod'
import { mistakeIn } from '../../console/portal/form.ts'
import { html, type Part } from '../../console/portal/html.ts'
import { type PageAnswer, type PageRoute, postForm, renderPage, type Visit } from '../../console/portal/layout.ts'
import { crumbs, facts, headline } from '../../console/portal/parts.ts'
import { fullTime } from '../../console/portal/times.ts'
import type { FormerOrder } from '../../core/domain/admin/operator-action.ts'
import { countText } from '../../core/domain/amounts.ts'
import { parseTypedIdentifier } from '../../core/domain/identifiers.ts'
import type { UseCases } from '../../core/http/use-cases.ts'
import type { ErasureReport } from './manage-erasures.ts'

/** Makes the page that a parcel's form "Erase" leads to. */
export function erasePages({ lookAtParcels, manageErasures }: Pick<UseCases, 'lookAtParcels' | 'manageErasures'>): readonly PageRoute[] {
  return [postForm('/parcels/:identifier/erase', erase, { again: (visit, { action }) => showErased(visit, manageErasures, action) })]

  /** Erases the parcel if the operator has typed its identifier to confirm. */
  async function erase(visit: Visit): Promise<PageAnswer> {
    const { identifiers } = await lookAtParcels.inspect(visit.param('identifier'))
    const typed = parseTypedIdentifier(visit.form.get('confirm'))
    if (!identifiers.some(({ value }) => value === typed)) throw mistakeIn('confirm', 'Type the identifier of the parcel to confirm.')
    return { page: erasedPage(visit, await manageErasures.forget(visit.param('identifier'), { dryRun: false }, visit.by)) }
  }
}

/** What an erasure has removed, as the audit trail knows it. It does not count what only named the parcel. */
interface FormerlyRemoved {
  readonly counts: Pick<ErasureReport['removed'], 'parcels' | 'identifiers' | 'pushes' | 'sightings' | 'deliveries'>
  readonly endpoints: readonly string[]
}

const count = z.number().catch(0)
const formerly = z.object({
  removed: z.object({ parcels: count, identifiers: count, pushes: count, sightings: count, deliveries: count }),
  endpoints: z.array(z.string()),
})

/** Reads the details of the order. Null: another version of the relay has recorded it. */
function removedIn(detail: Readonly<Record<string, unknown>>): FormerlyRemoved | null {
  const { data } = formerly.safeParse(detail)
  return data === undefined ? null : { counts: data.removed, endpoints: data.endpoints }
}

/**
 * Makes the page that reports an erasure: the receipt for whoever asked for it. Only this page names the parcel. `former`: the form was sent
 * before, and this is what it has removed.
 */
function erasedPage(
  visit: Visit,
  { unreadable, stores, storage, ...report }: ErasureReport,
  former: FormerlyRemoved | null = null,
): string {
  const removed = former?.counts ?? report.removed
  const endpoints = former?.endpoints ?? report.endpoints.map(({ name }) => name)
  const [receipt] = report.receipts
  const erasedAtMs = receipt?.erasedAtMs ?? report.atMs
  const wasErased = receipt?.outcome === 'erased_before' && former === null
  const names = (list: readonly string[]) => (list.length === 0 ? 'none' : list.join(', '))
  const rows: readonly (readonly [string, Part])[] = [
    ['Identifier', receipt?.identifier ?? ''],
    [wasErased ? 'Was erased' : 'Erased', fullTime(erasedAtMs, visit.nowMs)],
    ['Order', html`${fullTime(report.atMs, visit.nowMs)} by ${report.by.name}`],
    ['Relay', report.relay],
    ['Marks of its tombstones', html`<span class="id">${receipt?.marks.join(' ') ?? ''}</span>`],
    ['Parcels', countText(removed.parcels)],
    ['Identifiers', countText(removed.identifiers)],
    ['Pushes', countText(removed.pushes)],
    ['Entries reported', countText(removed.sightings)],
    ['Deliveries', countText(removed.deliveries)],
    former === null
      ? ['Other records that named it', countText(report.removed.mentions)]
      : ['Unrecorded pushes and other records that named it', 'counted when the form was sent first'],
    ['Webhooks that were sent something of it', names(endpoints)],
    ['Backups that may hold it', names(report.backups)],
    ...(report.restoredAtMs === null || report.backups.length === 0
      ? []
      : [['All backups are named that are older than the last restore', fullTime(report.restoredAtMs, visit.nowMs)] as const]),
    ...(report.backupsUnreadable === null ? [] : [['The folder of backups cannot be read', report.backupsUnreadable] as const]),
    ...(stores.length === 0 ? [] : [['Left stores and copies that may hold it: delete them', names(stores)] as const]),
    ['Records that may name it and stay', countText(unreadable)],
    ['Files of the store', storage.state === 'clean' ? 'hold nothing of it any more' : storage.because],
  ]
  const main = html`${crumbs([visit.to`/parcels`, 'Parcels'])}
${headline({
  title: 'The parcel is erased',
  lead: 'This page is the receipt: print it or save it. Then make a new backup, delete those below with their copies, and ask the owners of the webhooks to erase the parcel too.',
})}
${facts(rows)}`
  return renderPage(visit, 'parcels', 'Erased · Parcels', main)
}

/** Reports an erasure again. The parcel is gone, so what was removed is read from the audit trail. */
async function showErased(
  visit: Visit,
  { forget }: UseCases['manageErasures'],
  { atMs, detail }: FormerOrder['action'],
): Promise<PageAnswer> {
  const report = await forget(visit.param('identifier'), { dryRun: true }, visit.by)
  return { page: erasedPage(visit, { ...report, atMs }, removedIn(detail)) }
}
