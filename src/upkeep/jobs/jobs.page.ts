import { html, link, type Markup, markup, type Part } from '../../console/portal/html.ts'
import { getPage, type PageAnswer, type PageRoute, postForm, renderPage, type Visit } from '../../console/portal/layout.ts'
import { actionButton, asOfLine, crumbs, headline, island, type StateKind, stateMark, table } from '../../console/portal/parts.ts'
import { namesOfWebhooks, timeInTable, type WebhookName } from '../../console/portal/times.ts'
import type { Job } from '../../core/domain/admin/job.ts'
import { counted, countText } from '../../core/domain/amounts.ts'
import { AppError, type ErrorCode } from '../../core/domain/errors.ts'
import { reasonText } from '../../core/domain/ingest/fault-in-body.ts'
import type { UseCases } from '../../core/http/use-cases.ts'
import type { HistoryChangeKind } from '../rebuild/compare-histories.rules.ts'
import { type RebuildExample, type RebuildJobTask, type RebuildReport, rebuiltBy } from '../rebuild/rebuild.rules.ts'

const SHOWN_MAX = 50
/** The page shows these errors next to its form. Other errors get an error page. */
const REFUSALS: readonly ErrorCode[] = ['bad_request', 'not_found', 'too_many_jobs']

type Parts = Pick<UseCases, 'manageJobs' | 'manageRebuild' | 'manageEndpoints'>

/** Makes the pages about jobs. A job does work that takes too long for one request. The pages show its progress and a button to stop it. */
export function jobPages({ manageJobs, manageRebuild, manageEndpoints }: Parts): readonly PageRoute[] {
  async function list(visit: Visit, said: RebuildSaid): Promise<PageAnswer> {
    const { jobs } = await manageJobs.list({ cursor: null, limit: SHOWN_MAX })
    const page = jobsPage(visit, jobs, await namesOfWebhooks(manageEndpoints), said)
    return { page, status: said === null ? 200 : 409 }
  }

  return [
    getPage('/jobs', (visit) => list(visit, null)),
    postForm('/jobs/rebuild', async (visit) => {
      const typed = visit.form.get('parcels')
      const identifiers = parcelsIn(typed)
      try {
        const body = identifiers === null ? undefined : { identifiers }
        await manageRebuild.start({ body, dryRun: visit.form.get('do') !== 'rebuild' }, visit.by)
        return { goTo: visit.to`/jobs` }
      } catch (error) {
        if (error instanceof AppError && REFUSALS.includes(error.code)) return await list(visit, { because: error.message, typed })
        throw error
      }
    }),
    postForm(
      '/jobs/:id/cancel',
      async ({ param, to, by }) => {
        await manageJobs.cancel(param('id'), by)
        return { goTo: to`/jobs` }
      },
      { again: goToJobs },
    ),
  ]
}

/** A form that started or stopped a job leads to the list of jobs, also when it is sent again. */
export async function goToJobs({ to }: Visit): Promise<PageAnswer> {
  return { goTo: to`/jobs` }
}

function jobsPage(visit: Visit, jobs: readonly Job[], webhooks: readonly WebhookName[], said: RebuildSaid): string {
  const { to, nowMs } = visit
  const lead = `Replays, reprocessing, dismissing, backups, retention passes, rebuilds and moves of the store. The newest ${SHOWN_MAX} are shown.`
  const main = html`${crumbs([to`/deliveries`, 'Deliveries'])}
${headline({ title: 'Jobs', lead, asOf: asOfLine(nowMs, to`/jobs`, true) })}
${island('jobs', jobs.length === 0 ? html`<div class="empty"><h2>There was no job yet</h2></div>` : jobTable(visit, jobs, webhooks))}
${rebuildForm(visit, said)}`
  return renderPage(visit, 'deliveries', 'Jobs', main)
}

function jobTable(visit: Visit, jobs: readonly Job[], webhooks: readonly WebhookName[]): Markup {
  const { to, nowMs } = visit
  const timeOf = (atMs: number | null): Part => (atMs === null ? null : timeInTable(atMs, nowMs))
  return table({
    label: 'Jobs, newest first',
    columns: ['Job', 'What', 'State', { number: 'Done' }, 'Ordered by', { time: 'Started' }, { time: 'Ended' }, { hidden: 'Stop' }],
    rows: jobs.map((job) => [
      String(job.jobId),
      workOf(visit, job, webhooks),
      stateOf(job),
      doneOf(job),
      job.by,
      timeOf(job.startedAtMs),
      timeOf(job.endedAtMs),
      job.endedAtMs === null ? actionButton(to`/jobs/${String(job.jobId)}/cancel`, `Stop job ${job.jobId}`, 'danger') : null,
    ]),
  })
}

function doneOf({ done, task }: Job): string {
  return task.kind === 'rebuild' ? `${countText(done)} of ${countText(Math.max(done, task.total))}` : countText(done)
}

function workOf({ to }: Visit, job: Job, webhooks: readonly WebhookName[]): Part {
  const { task } = job
  if (task.kind === 'move') return html`Move of the store to <code>${task.to}</code>`
  if (task.kind === 'backup') return html`Backup <code>${task.name}</code>`
  if (task.kind === 'retention') return 'Retention pass'
  if (task.kind === 'rebuild') return rebuildOf({ to }, task, job)
  if (task.kind === 'dismiss') {
    const { reason } = task.selection
    return `Dismiss what is in quarantine${reason === null ? '' : `: ${reasonText(reason)}`}`
  }
  if (task.kind === 'reprocess') {
    const { state, reason } = task.selection
    return `Reprocess what is ${state === 'expired' ? 'expired' : 'in quarantine'}${reason === null ? '' : `: ${reasonText(reason)}`}`
  }
  return `Replay to ${webhooks.find(({ id }) => id === task.to)?.name ?? `webhook ${task.to}`}`
}

function stateOf({ state, failure }: Job): Markup {
  const kinds: Readonly<Record<Job['state'], StateKind>> = { waiting: 'none', running: 'none', done: 'ok', failed: 'bad', cancelled: 'off' }
  return html`${stateMark(kinds[state], state === 'cancelled' ? 'stopped' : state)}${failure === null ? null : html` <small>${failure}</small>`}`
}

/** Why no rebuild was started, and which parcels were typed. Null: nobody asked for a rebuild. */
type RebuildSaid = { readonly because: string; readonly typed: string } | null

/** Makes the form that rebuilds histories. Its main button only compares, so that an operator first sees what a rebuild would change. */
function rebuildForm({ to }: Visit, said: RebuildSaid): Markup {
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
function parcelsIn(text: string): readonly string[] | null {
  const typed = text.split(/[\s,]+/).filter((part) => part !== '')
  return typed.length === 0 ? null : typed
}

/** Describes a rebuild job, and the differences that it has found so far. */
function rebuildOf({ to }: Pick<Visit, 'to'>, task: RebuildJobTask, job: Pick<Job, 'cursor' | 'state'>): Markup {
  const rebuilt = rebuiltBy(job)
  const which = task.parcels === null ? 'all histories' : counted(task.parcels.length, 'history', 'histories')
  return html`${task.dryRun ? 'Compare' : 'Rebuild'} ${which}${rebuilt === null ? null : html`<br><small>${findings({ to }, rebuilt, job.state === 'done')}</small>`}`
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
