import { AppError, type ErrorCode } from '../../../core/domain/errors.ts'
import { REASON_CHOICES } from '../../../core/domain/ingest/fault-in-body.ts'
import { INBOX_STATES } from '../../../core/flow/admin/inbox/manage-inbox.ts'
import type { UseCases } from '../../../core/http/use-cases.ts'
import { refusalsPage } from '../../../upkeep/refusals/refusals.page.ts'
import type { PageAnswer, PageRoute, Visit } from '../page-route.ts'
import { readTimes } from '../time-filter.ts'
import { type DismissChoice, type InboxFilters, type InboxSaid, inboxPage } from './inbox-list.page.ts'
import { type PushSaid, pushPage } from './push.page.ts'

const LIST_MAX = 100
/** The page shows these errors next to its filters. Other errors get an error page. */
const MISTAKES: readonly ErrorCode[] = ['bad_request', 'bad_tracking_number']
/** Errors that say why pushes were not reprocessed or dismissed. The page shows these too. */
const REFUSALS: readonly ErrorCode[] = ['not_reprocessable', 'not_dismissable', 'too_many_jobs']

/** Makes the pages about received pushes: the list, a page for each push, and the list of refused signatures. */
// oxlint-disable-next-line max-lines-per-function -- a list of routes, and the answers to them
export function inboxPages({ manageInbox }: Pick<UseCases, 'manageInbox'>): readonly PageRoute[] {
  return [
    { method: 'get', path: '/inbox', scope: 'admin', answer: (visit) => list(visit, null) },
    {
      method: 'post',
      path: '/inbox',
      scope: 'admin',
      answer: (visit) => (visit.form.get('do') === '' ? reprocessAll(visit) : dismissMany(visit)),
      again: (visit, { action }) => list(visit, { kind: 'again', atMs: action.atMs }),
    },
    // Keep this route before `/inbox/:id`: the first match answers.
    { method: 'get', path: '/inbox/refusals', scope: 'admin', answer: listRefusals },
    { method: 'get', path: '/inbox/:id', scope: 'admin', answer: (visit) => show(visit, null) },
    { method: 'get', path: '/inbox/:id/body', scope: 'admin', answer: download },
    { method: 'post', path: '/inbox/:id/reprocess', scope: 'admin', answer: reprocess },
    { method: 'post', path: '/inbox/:id/dismiss', scope: 'admin', answer: dismiss },
  ]

  async function list(visit: Visit, said: InboxSaid): Promise<PageAnswer> {
    const [asked, cursor] = [visit.query('state'), visit.query('cursor')]
    if (!/^\d{0,15}$/.test(cursor)) throw new AppError('not_found', 'The list has no such page.')
    const filters: InboxFilters = {
      parcel: visit.query('parcel').trim(),
      reason: readReason(visit.query('reason')) ?? '',
      from: visit.query('from'),
      to: visit.query('to'),
    }
    const state = asked === 'all' ? null : (INBOX_STATES.find((one) => one === asked) ?? 'quarantined')
    const question = {
      state,
      reason: filters.reason === '' ? null : filters.reason,
      parcel: filters.parcel === '' ? null : filters.parcel,
      cursor: cursor === '' ? null : Number(cursor),
      limit: LIST_MAX,
    }
    const [groups, refused] = await Promise.all([manageInbox.quarantined(), manageInbox.refusedSenders()])
    const listing = { shown: state ?? 'all', filters, isFirst: cursor === '', groups, refused, said } as const
    try {
      const found = await manageInbox.list({ ...question, ...readTimes(filters) })
      return { page: inboxPage(visit, { ...listing, ...found, mistake: null }), status: said?.kind === 'refused' ? 409 : 200 }
    } catch (error) {
      if (!(error instanceof AppError) || !MISTAKES.includes(error.code)) throw error
      return { page: inboxPage(visit, { ...listing, pushes: [], next: null, mistake: error.message }), status: 400 }
    }
  }

  async function listRefusals(visit: Visit): Promise<PageAnswer> {
    const cursor = visit.query('cursor')
    if (!/^\d{0,15}$/.test(cursor)) throw new AppError('not_found', 'The list has no such page.')
    const found = await manageInbox.refusals({ cursor: cursor === '' ? null : Number(cursor), limit: LIST_MAX })
    return { page: refusalsPage(visit, { ...found, isFirst: cursor === '' }) }
  }

  async function reprocessAll(visit: Visit): Promise<PageAnswer> {
    const reason = readReason(visit.form.get('reason'))
    const said = await orRefused(async (): Promise<InboxSaid> => {
      const answer = await manageInbox.reprocessAll({ state: 'quarantined', reason, dryRun: false }, visit.by)
      if (answer.kind === 'job') return { kind: 'job', jobId: answer.job.jobId, does: 'reprocesses' }
      return answer.kind === 'counted' ? null : answer
    })
    return await list(visit, said)
  }

  /** Counts the chosen pushes, and dismisses them once that count was confirmed. */
  async function dismissMany(visit: Visit): Promise<PageAnswer> {
    const choice = readChoice(visit)
    return await list(
      visit,
      await orRefused(async (): Promise<InboxSaid> => {
        const count = await countOf(visit, choice)
        if (count === 0 || visit.form.get('do') !== 'dismiss' || visit.form.get('counted') !== String(count))
          return { kind: 'counted', count, choice }
        if ('ids' in choice) {
          return { kind: 'dismissed', count: await dismissListed(visit, choice.ids) }
        }
        const answer = await manageInbox.dismissAll({ reason: choice.reason, dryRun: false }, visit.by)
        return answer.kind === 'job'
          ? { kind: 'job', jobId: answer.job.jobId, does: 'dismisses' }
          : { kind: 'dismissed', count: answer.count }
      }),
    )
  }

  /** Returns how many were still in quarantine. */
  async function dismissListed({ by }: Visit, ids: readonly string[]): Promise<number> {
    let count = 0
    for (const id of ids) {
      // The first one stores the form, whose id can be stored only once.
      const { form, ...others } = by
      const dismissed = await orRefused(() => manageInbox.dismiss(id, count === 0 && form !== undefined ? { ...others, form } : others))
      if (!('because' in dismissed)) count += 1
    }
    return count
  }

  async function countOf({ by }: Visit, choice: DismissChoice): Promise<number> {
    if ('ids' in choice) return choice.ids.length
    const answer = await manageInbox.dismissAll({ reason: choice.reason, dryRun: true }, by)
    return answer.kind === 'job' ? 0 : answer.count
  }

  async function show(visit: Visit, said: PushSaid): Promise<PageAnswer> {
    const push = await manageInbox.find(visit.param('id'))
    const page = pushPage(visit, { push, isIndented: visit.query('as') === 'indented', said })
    return { page, status: said?.kind === 'refused' ? 409 : 200 }
  }

  async function download({ param }: Visit): Promise<PageAnswer> {
    const { inboxId, body } = await manageInbox.find(param('id'))
    if (body === null) throw new AppError('not_found', 'Its bytes are no longer kept (retention.raw).')
    return { file: body, name: `push-${inboxId}.bin` }
  }

  async function reprocess(visit: Visit): Promise<PageAnswer> {
    return await show(visit, await orRefused(() => manageInbox.reprocess(visit.param('id'), visit.by)))
  }

  async function dismiss(visit: Visit): Promise<PageAnswer> {
    const refused = await orRefused(async () => {
      await manageInbox.dismiss(visit.param('id'), visit.by)
      return null
    })
    return refused === null ? { goTo: visit.to`/inbox/${visit.param('id')}` } : await show(visit, refused)
  }
}

function readChoice({ form }: Visit): DismissChoice {
  const ids = form
    .get('ids')
    .split(' ')
    .filter((id) => /^\d{1,15}$/.test(id))
    .slice(0, LIST_MAX)
  if (ids.length > 0) return { ids }
  const reason = readReason(form.get('reason'))
  if (reason === null) throw new AppError('bad_request', 'Choose which pushes to dismiss.')
  return { reason }
}

function readReason(text: string): string | null {
  return REASON_CHOICES.find(([reason]) => reason === text)?.[0] ?? null
}

/** Returns the result of the work or, if it fails with one of `REFUSALS`, the reason. */
async function orRefused<Done>(work: () => Promise<Done>): Promise<Done | { readonly kind: 'refused'; readonly because: string }> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof AppError && REFUSALS.includes(error.code)) return { kind: 'refused', because: error.message }
    throw error
  }
}
