import type { Job } from '../../../domain/admin/job.ts'
import type { ManageJobs } from '../../../flow/admin/manage-jobs.ts'
import type { ManageEndpoints } from '../../../flow/delivery/manage-endpoints.ts'
import { html, type Markup, type Part } from '../html.ts'
import { reasonInTable } from '../inbox/quarantine-words.ts'
import { renderPage } from '../layout.ts'
import type { PageRoute, Visit } from '../page-route.ts'
import { actionButton, asOfLine, countText, headline, island, type StateKind, stateMark, table } from '../parts.ts'
import { timeInTable } from '../times.ts'
import { namesOfWebhooks, type WebhookName } from '../webhooks/webhook-names.ts'

export interface JobPagesOptions {
  readonly manageJobs: ManageJobs
  readonly manageEndpoints: Pick<ManageEndpoints, 'states'>
}

const SHOWN_MAX = 50

/** Work that takes too long for one request: its progress, and a button that stops it. */
export function jobPages({ manageJobs, manageEndpoints }: JobPagesOptions): readonly PageRoute[] {
  return [
    {
      method: 'get',
      path: '/jobs',
      scope: 'admin',
      answer: async (visit) => {
        const { jobs } = await manageJobs.list({ cursor: null, limit: SHOWN_MAX })
        return { page: jobsPage(visit, jobs, await namesOfWebhooks(manageEndpoints)) }
      },
    },
    {
      method: 'post',
      path: '/jobs/:id/cancel',
      scope: 'admin',
      answer: async ({ param, to, by }) => {
        await manageJobs.cancel(param('id'), by)
        return { goTo: to`/jobs` }
      },
    },
  ]
}

function jobsPage(visit: Visit, jobs: readonly Job[], webhooks: readonly WebhookName[]): string {
  const { to, nowMs, person } = visit
  const lead = `Replays, reprocessing, backups, retention passes and moves of the store. The newest ${SHOWN_MAX} are shown.`
  const main = html`${headline({ title: 'Jobs', lead, asOf: asOfLine(nowMs, to`/jobs`, true) })}
${island('jobs', jobs.length === 0 ? html`<div class="empty"><h2>There was no job yet</h2></div>` : jobTable(visit, jobs, webhooks))}`
  return renderPage(visit, { title: 'Jobs', section: null, person, main })
}

function jobTable({ to, nowMs }: Visit, jobs: readonly Job[], webhooks: readonly WebhookName[]): Markup {
  const timeOf = (atMs: number | null): Part => (atMs === null ? null : timeInTable(atMs, nowMs))
  return table({
    label: 'Jobs, newest first',
    columns: [
      { title: 'Job' },
      { title: 'What' },
      { title: 'State' },
      { title: 'Done', isNumber: true },
      { title: 'Ordered by' },
      { title: 'Started (UTC)' },
      { title: 'Ended (UTC)' },
      { title: 'Stop', isHidden: true },
    ],
    rows: jobs.map((job) => [
      String(job.jobId),
      workOf(job, webhooks),
      stateOf(job),
      countText(job.done),
      job.by,
      timeOf(job.startedAtMs),
      timeOf(job.endedAtMs),
      job.endedAtMs === null ? actionButton(to`/jobs/${String(job.jobId)}/cancel`, `Stop job ${job.jobId}`, 'danger') : null,
    ]),
  })
}

function workOf({ task }: Job, webhooks: readonly WebhookName[]): Part {
  if (task.kind === 'move') return html`Move of the store to <code>${task.to}</code>`
  if (task.kind === 'backup') return html`Backup <code>${task.name}</code>`
  if (task.kind === 'retention') return 'Remove what is past its time'
  if (task.kind === 'reprocess') {
    const { state, reason } = task.selection
    return `Reprocess what is ${state === 'expired' ? 'expired' : 'in quarantine'}${reason === null ? '' : `: ${reasonInTable(reason)}`}`
  }
  return `Replay to ${webhooks.find(({ id }) => id === task.to)?.name ?? `webhook ${task.to}`}`
}

function stateOf({ state, failure }: Job): Markup {
  const kinds: Readonly<Record<Job['state'], StateKind>> = { waiting: 'none', running: 'none', done: 'ok', failed: 'bad', cancelled: 'off' }
  return html`${stateMark(kinds[state], state === 'cancelled' ? 'stopped' : state)}${failure === null ? null : html` <small>${failure}</small>`}`
}
