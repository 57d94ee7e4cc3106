import { readShownTest } from '../../../core/domain/admin/operator-action.ts'
import { seriesOf, spanStart } from '../../../core/domain/admin/tally.ts'
import { CONDITIONS } from '../../../core/domain/delivery/endpoint-state.ts'
import { AppError } from '../../../core/domain/errors.ts'
import type { UseCases } from '../../../core/http/use-cases.ts'
import { mistakeIn } from '../form.ts'
import type { PageAnswer, PageRoute, Visit } from '../layout.ts'
import { type WebhookSaid, webhookPage } from './webhook.page.ts'
import { webhookEditPages } from './webhook-edit.page.ts'
import { webhookListPage } from './webhook-list.page.ts'

const LIST_MAX = 100
const HOUR_MS = 3_600_000

/** Makes the pages about webhooks: the list, and pages to look at, add, change, test, disable and remove a webhook. */
export function webhookPages({ manageEndpoints, operations }: Pick<UseCases, 'operations' | 'manageEndpoints'>): readonly PageRoute[] {
  return [
    { method: 'get', path: '/webhooks', scope: 'admin', answer: list },
    ...webhookEditPages(manageEndpoints),
    { method: 'get', path: '/webhooks/:id', scope: 'admin', answer: (visit) => show(visit) },
    {
      method: 'post',
      path: '/webhooks/:id/test',
      scope: 'admin',
      answer: async (visit) => show(visit, { kind: 'tested', result: await manageEndpoints.test(visit.param('id'), visit.by) }),
      again: async (visit, { shown }) => {
        const result = readShownTest(shown)
        return await show(visit, result === null ? null : { kind: 'tested', result })
      },
    },
    { method: 'post', path: '/webhooks/:id/retry', scope: 'admin', answer: after((id, by) => manageEndpoints.retry(id, by)) },
    {
      method: 'post',
      path: '/webhooks/:id/enable',
      scope: 'admin',
      answer: after((id, by) => manageEndpoints.change(id, { enabled: true }, by)),
    },
    {
      method: 'post',
      path: '/webhooks/:id/disable',
      scope: 'admin',
      answer: after((id, by) => manageEndpoints.change(id, { enabled: false }, by)),
    },
    { method: 'post', path: '/webhooks/:id/remove', scope: 'admin', answer: remove, again: async ({ to }) => ({ goTo: to`/webhooks` }) },
  ]

  async function list(visit: Visit): Promise<PageAnswer> {
    const name = visit.query('name')
    const named =
      name === '' ? undefined : (await manageEndpoints.states()).find(({ endpoint }) => [endpoint.name, endpoint.id].includes(name))
    if (named !== undefined) return { goTo: visit.to`/webhooks/${named.endpoint.id}` }
    const skip = visit.query('skip')
    if (!/^\d{0,9}$/.test(skip)) throw new AppError('not_found', 'The list has no such page.')
    const condition = CONDITIONS.find((one) => one === visit.query('state')) ?? null
    const question = { text: name === '' ? visit.query('query').trim() : name, condition, skip: Number(skip), limit: LIST_MAX }
    return { page: webhookListPage(visit, { ...(await manageEndpoints.search(question)), search: question, ...question }) }
  }

  async function show(visit: Visit, said: WebhookSaid = null): Promise<PageAnswer> {
    const view = await manageEndpoints.find(visit.param('id'))
    const last = spanStart('hour', visit.nowMs)
    const fromMs = last - 23 * HOUR_MS
    const stored = await operations.tallies({ kind: `endpoint:${view.endpoint.id}`, span: 'hour', fromMs, toMs: visit.nowMs + 1 })
    return { page: webhookPage(visit, { ...view, attempts: seriesOf(stored, { span: 'hour', last, length: 24 }) }, said) }
  }

  function after(act: (id: string, by: Visit['by']) => Promise<unknown>): PageRoute['answer'] {
    return async ({ param, to, by }) => {
      await act(param('id'), by)
      return { goTo: to`/webhooks/${param('id')}` }
    }
  }

  async function remove(visit: Visit): Promise<PageAnswer> {
    const id = visit.param('id')
    const { name } = (await manageEndpoints.find(id)).endpoint
    if (withSingleSpaces(visit.form.get('confirm')) !== withSingleSpaces(name))
      throw mistakeIn('confirm', `Type the name ${name} to confirm.`)
    await manageEndpoints.remove(id, visit.by)
    return { goTo: visit.to`/webhooks` }
  }
}

/** Browsers show any white space as one space, so people type one. */
function withSingleSpaces(text: string): string {
  return text.trim().replace(/\s+/g, ' ')
}
