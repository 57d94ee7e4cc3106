import type { Job } from '../../../domain/admin/job.ts'
import { countText } from '../../../domain/amounts.ts'
import { AppError, type ErrorCode } from '../../../domain/errors.ts'
import { reasonText } from '../../../domain/ingest/quarantine-words.ts'
import type { ManageJobs } from '../../../flow/admin/jobs/manage-jobs.ts'
import type { ManageRebuild } from '../../../flow/admin/jobs/manage-rebuild.ts'
import type { ManageEndpoints } from '../../../flow/delivery/manage-endpoints.ts'
import { html, type Markup, type Part } from '../html.ts'
import { renderPage } from '../layout.ts'
import type { PageAnswer, PageRoute, Visit } from '../page-route.ts'
import { actionButton, asOfLine, crumbs, headline, island, type StateKind, stateMark, table } from '../parts.ts'
import { timeInTable } from '../times.ts'
import { namesOfWebhooks, type WebhookName } from '../webhooks/webhook-names.ts'
import { parcelsIn, type RebuildSaid, rebuildForm, rebuildOf } from './rebuild-form.ts'

export interface JobPagesOptions {
  readonly manageJobs: ManageJobs
  readonly manageRebuild: ManageRebuild
  readonly manageEndpoints: Pick<ManageEndpoints, 'states'>
}

const SHOWN_MAX = 50
/** The page shows these errors next to its form. Other errors get an error page. */
const REFUSALS: readonly ErrorCode[] = ['bad_request', 'not_found', 'too_many_jobs']

/** Makes the pages about jobs. A job does work that takes too long for one request. The pages show its progress and a button to stop it. */
export function jobPages({ manageJobs, manageRebuild, manageEndpoints }: JobPagesOptions): readonly PageRoute[] {
  async function list(visit: Visit, said: RebuildSaid): Promise<PageAnswer> {
    const { jobs } = await manageJobs.list({ cursor: null, limit: SHOWN_MAX })
    const page = jobsPage(visit, jobs, await namesOfWebhooks(manageEndpoints), said)
    return { page, status: said === null ? 200 : 409 }
  }

  return [
    {
      method: 'get',
      path: '/jobs',
      scope: 'admin',
      answer: (visit) => list(visit, null),
    },
    {
      method: 'post',
      path: '/jobs/rebuild',
      scope: 'admin',
      async answer(visit) {
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
      again: goToJobs,
    },
  ]
}

/** A form that started or stopped a job leads to the list of jobs, also when it is sent again. */
export async function goToJobs({ to }: Visit): Promise<PageAnswer> {
  return { goTo: to`/jobs` }
}

function jobsPage(visit: Visit, jobs: readonly Job[], webhooks: readonly WebhookName[], said: RebuildSaid): string {
  const { to, nowMs, person } = visit
  const lead = `Replays, reprocessing, dismissing, backups, retention passes, rebuilds and moves of the store. The newest ${SHOWN_MAX} are shown.`
  const main = html`${crumbs([to`/deliveries`, 'Deliveries'])}
${headline({ title: 'Jobs', lead, asOf: asOfLine(nowMs, to`/jobs`, true) })}
${island('jobs', jobs.length === 0 ? html`<div class="empty"><h2>There was no job yet</h2></div>` : jobTable(visit, jobs, webhooks))}
${rebuildForm(visit, said)}`
  return renderPage(visit, { title: 'Jobs', section: 'deliveries', person, main })
}

function jobTable(visit: Visit, jobs: readonly Job[], webhooks: readonly WebhookName[]): Markup {
  const { to, nowMs } = visit
  const timeOf = (atMs: number | null): Part => (atMs === null ? null : timeInTable(atMs, nowMs))
  return table({
    label: 'Jobs, newest first',
    columns: [
      { title: 'Job' },
      { title: 'What' },
      { title: 'State' },
      { title: 'Done', isNumber: true },
      { title: 'Ordered by' },
      { title: 'Started', isTime: true },
      { title: 'Ended', isTime: true },
      { title: 'Stop', isHidden: true },
    ],
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
