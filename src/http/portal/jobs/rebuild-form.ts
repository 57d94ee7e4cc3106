import type { Job, RebuildJobTask } from '../../../domain/admin/job.ts'
import type { RebuildExample, RebuildReport } from '../../../domain/admin/rebuild.ts'
import { counted } from '../../../domain/amounts.ts'
import type { HistoryChangeKind } from '../../../domain/history/rebuild/compare-histories.ts'
import { link } from '../addresses.ts'
import { html, type Markup, markup } from '../html.ts'
import type { Visit } from '../page-route.ts'

/** Why no rebuild was started, and which parcels were typed. Null: nobody asked for a rebuild. */
export type RebuildSaid = { readonly because: string; readonly typed: string } | null

/** Makes the form that rebuilds histories. Its main button only compares, so that an operator first sees what a rebuild would change. */
export function rebuildForm({ to }: Visit, said: RebuildSaid): Markup {
  return html`<details class="plain"${said === null ? null : markup(' open')}><summary>Rebuild histories</summary>
<form id="rebuild" method="post" action="${to`/jobs/rebuild`.path}">
<p>Compares each history with the bytes of its pushes and polled answers, by the rules of this version, and corrects what differs. The feed shows each change. Webhooks get nothing.</p>
<div class="filters">
<div><label for="rp">Only these parcels</label><input id="rp" name="parcels" placeholder="all" value="${said?.typed ?? ''}"></div>
</div>
<p><button class="btn main" type="submit" name="do" value="compare">Compare only</button> <button class="btn" type="submit" name="do" value="rebuild">Rebuild</button></p>
</form>
${said === null ? null : html`<div class="note bad" role="alert"><strong>No job was started.</strong> ${said.because}</div>`}</details>`
}

/** Splits the typed identifiers at spaces and commas. Null: nothing was typed. */
export function parcelsIn(text: string): readonly string[] | null {
  const typed = text.split(/[\s,]+/).filter((part) => part !== '')
  return typed.length === 0 ? null : typed
}

/** Describes a rebuild job, and the differences that it has found so far. */
export function rebuildOf({ to }: Pick<Visit, 'to'>, task: RebuildJobTask, { rebuilt, state }: Pick<Job, 'rebuilt' | 'state'>): Markup {
  const which = task.parcels === null ? 'all histories' : counted(task.parcels.length, 'history', 'histories')
  return html`${task.dryRun ? 'Compare' : 'Rebuild'} ${which}${rebuilt === undefined ? null : html`<br><small>${findings({ to }, rebuilt, state === 'done')}</small>`}`
}

const WORDS: Readonly<Record<HistoryChangeKind, readonly [one: string, many: string]>> = {
  entry: ['entry is missing', 'entries are missing'],
  update: ['entry differs', 'entries differ'],
  united: ['entry was several', 'entries were several'],
  split: ['entry was part of another', 'entries were parts of others'],
  removed: ['entry has no evidence', 'entries have no evidence'],
  parcel: ['parcel differs as a whole', 'parcels differ as a whole'],
}

function findings({ to }: Pick<Visit, 'to'>, report: RebuildReport, isDone: boolean): Markup {
  const changes = report.examples.map((example) => {
    const [one, many] = WORDS[example.kind]
    return html` ${counted(report.changes[example.kind] ?? 0, one, many)}${whereOf({ to }, example)}.`
  })
  const others = [
    [
      report.fromSightings,
      'without all of its bytes, compared with its sightings',
      'without all of their bytes, compared with their sightings',
    ],
    [report.damaged, 'with damaged bytes', 'with damaged bytes'],
    [report.conflicts, 'names an identifier of another parcel', 'name an identifier of another parcel'],
    [report.left, 'could not be compared', 'could not be compared'],
  ] as const
  const more = others.filter(([count]) => count > 0).map(([count, one, many]) => ` ${counted(count, `parcel ${one}`, `parcels ${many}`)}.`)
  const verdict =
    report.differing === 0
      ? `${isDone ? 'Everything is equal' : 'Nothing differs so far'}.`
      : `${counted(report.differing, 'parcel differs', 'parcels differ')}, ${counted(report.histories, 'of them in its history', 'of them in their histories')}.`
  return html`${verdict}${changes}${more}`
}

function whereOf({ to }: Pick<Visit, 'to'>, { identifier = null, entry, members }: RebuildExample): Markup {
  const parts = [...(entry === null ? [] : [`entry ${entry}`]), ...(members.length === 0 ? [] : [members.join(', ')])]
  const where = identifier === null ? 'a parcel that is gone' : link(to`/parcels/${identifier}`, identifier)
  return html` (${where}${parts.length === 0 ? null : `: ${parts.join(', ')}`})`
}
