import { AppError, type ErrorCode } from '../../../core/domain/errors.ts'
import { DELIVERY_STATES, readDeliveryCursor } from '../../../core/flow/delivery/manage-deliveries.ts'
import { leavingOf } from '../../../core/http/server/leaving.ts'
import type { UseCases } from '../../../core/http/use-cases.ts'
import type { PageAnswer, PageRoute, Visit } from '../page-route.ts'
import { readTime, readTimes } from '../time-filter.ts'
import { namesOfWebhooks } from '../webhooks/webhook-names.ts'
import { deliveryPage } from './delivery.page.ts'
import { type DeliveryFilters, deliveryListPage, withRemoved } from './delivery-list.page.ts'
import { type ReplayFields, type ReplaySaid, replayPage } from './replay.page.ts'

const LIST_MAX = 100
/** The page shows these errors next to its form. Other errors get an error page. */
const MISTAKES: readonly ErrorCode[] = ['bad_request', 'bad_tracking_number', 'not_found', 'not_replayable', 'too_many_jobs']
const NO_FILTERS: DeliveryFilters = { endpoint: '', parcel: '', state: '', from: '', to: '' }
/** The start of a replay if the form gives none. Only a replay with a start leaves out deliveries that were queued after the count. */
const EVER = '1970-01-01T00:00:00.001Z'

type Parts = Pick<UseCases, 'manageDeliveries' | 'manageEndpoints'>

export function deliveryPages({ manageDeliveries, manageEndpoints }: Parts): readonly PageRoute[] {
  return [
    { method: 'get', path: '/deliveries', scope: 'admin', answer: list },
    {
      method: 'get',
      path: '/deliveries/replay',
      scope: 'admin',
      answer: (visit) => showReplay(visit, null, { of: visit.query('endpoint'), state: '', since: '', to: visit.query('endpoint') }),
    },
    {
      method: 'post',
      path: '/deliveries/replay',
      scope: 'admin',
      answer: replayMany,
      again: (visit, { action }) => showReplay(visit, { kind: 'again', atMs: action.atMs }),
    },
    { method: 'get', path: '/deliveries/:id', scope: 'admin', answer: show },
    { method: 'post', path: '/deliveries/:id/replay', scope: 'admin', answer: replay },
    { method: 'post', path: '/deliveries/:id/retry', scope: 'admin', answer: after((id, by) => manageDeliveries.retry(id, by)) },
    { method: 'post', path: '/deliveries/:id/skip', scope: 'admin', answer: after((id, by) => manageDeliveries.skip(id, by)) },
  ]

  async function list(visit: Visit): Promise<PageAnswer> {
    const { query } = visit
    const filters = {
      endpoint: query('endpoint'),
      parcel: query('parcel').trim(),
      state: query('state'),
      from: query('from'),
      to: query('to'),
    }
    const cursor = query('cursor') === '' ? null : readDeliveryCursor(query('cursor'))
    if (cursor === null && query('cursor') !== '') throw new AppError('not_found', 'The list has no such page.')
    const webhooks = await namesOfWebhooks(manageEndpoints)
    const found = await orMistake(() => manageDeliveries.list({ ...readFilters(filters), cursor, limit: LIST_MAX }))
    if (typeof found !== 'string') return { page: deliveryListPage(visit, { filters, webhooks, ...found, mistake: null }) }
    return { page: deliveryListPage(visit, { filters, webhooks, deliveries: [], next: null, mistake: found }), status: 400 }
  }

  async function show(visit: Visit): Promise<PageAnswer> {
    const found = await manageDeliveries.find(visit.param('id'))
    return { page: deliveryPage(visit, { ...found, webhooks: await namesOfWebhooks(manageEndpoints) }) }
  }

  async function replay({ param, form, to, by }: Visit): Promise<PageAnswer> {
    const { delivery } = await manageDeliveries.find(param('id'))
    // Somebody may press the button twice. The second form must not queue the delivery again.
    if (form.get('queued') !== String(delivery.queuedAtMs))
      throw new AppError(
        'stale_form',
        'This delivery was queued again after the page was loaded, so nothing was done. Reload the page first.',
      )
    const other = form.get('to')
    await manageDeliveries.replay(param('id'), other === '' ? null : { to: other }, by)
    return { goTo: to`/deliveries/${param('id')}` }
  }

  function after(act: (id: string, by: Visit['by']) => Promise<unknown>): PageRoute['answer'] {
    return async ({ param, to, by }) => {
      await act(param('id'), by)
      return { goTo: to`/deliveries/${param('id')}` }
    }
  }

  /** Counts or replays what a form selects. A replay leaves out deliveries queued after the count, so that a form sent twice replays once. */
  async function replayMany(visit: Visit): Promise<PageAnswer> {
    const answer = await orMistake(() => answerTo(visit, fieldsIn(visit)))
    return await showReplay(visit, typeof answer === 'string' ? { kind: 'refused', because: answer } : answer)
  }

  async function showReplay(visit: Visit, said: ReplaySaid, fields = fieldsIn(visit)): Promise<PageAnswer> {
    const [targets, { deliveries }] = await Promise.all([
      namesOfWebhooks(manageEndpoints),
      manageDeliveries.list({ ...readFilters(NO_FILTERS), cursor: null, limit: LIST_MAX }),
    ])
    const sources = withRemoved(targets, deliveries, fields.of)
    return { page: replayPage(visit, { fields, said, sources, targets }), status: said?.kind === 'refused' ? 400 : 200 }
  }

  async function answerTo({ form, by, ctx }: Visit, fields: ReplayFields): Promise<NonNullable<ReplaySaid>> {
    const since = fields.since === '' ? EVER : new Date(readTime(fields.since, 'The time')).toISOString()
    const order = { since, of: fields.of, ...(fields.state === '' ? {} : { state: fields.state }) }
    const counted = form.get('counted')
    const isReplay = form.get('do') === 'replay' && /^\d{1,15}$/.test(counted)
    const asker = { by, left: leavingOf(ctx.res).signal, ...(isReplay ? { untilMs: Number(counted) } : {}) }
    const answer = await manageDeliveries.replayMany(fields.to, { ...order, dryRun: !isReplay }, asker)
    return answer.kind === 'job' ? { kind: 'job', jobId: answer.job.jobId } : answer
  }
}

function fieldsIn({ form }: Visit): ReplayFields {
  return { of: form.get('of'), state: form.get('state'), since: form.get('since'), to: form.get('to') }
}

function readFilters({ endpoint, parcel, state, from, to }: DeliveryFilters) {
  if (!/^\d{0,15}$/.test(endpoint)) throw new AppError('bad_request', 'There is no such webhook.')
  return {
    endpoint: endpoint === '' ? null : Number(endpoint),
    parcel: parcel === '' ? null : parcel,
    state: DELIVERY_STATES.find((one) => one === state) ?? null,
    ...readTimes({ from, to }),
  }
}

/** Returns the result of the work, or a sentence that says why the request was wrong. */
async function orMistake<Found extends object>(work: () => Promise<Found>): Promise<Found | string> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof AppError && MISTAKES.includes(error.code)) return error.message
    throw error
  }
}
