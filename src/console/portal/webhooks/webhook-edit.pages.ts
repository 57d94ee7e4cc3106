import type { FormerOrder } from '../../../core/domain/admin/operator-action.ts'
import { AppError } from '../../../core/domain/errors.ts'
import type { ManageEndpoints } from '../../../core/flow/delivery/manage-endpoints.ts'
import type { PageAnswer, PageRoute, Visit } from '../page-route.ts'
import { stampOfKeys } from './webhook.page.ts'
import { changesIn } from './webhook-changes.ts'
import { addedPage, editPage, keyPage, newPage } from './webhook-edit.page.ts'
import { bodyOf, EMPTY_FIELDS, type FieldErrors, fieldErrors, fieldsOf, fieldsOfEndpoint, startOf } from './webhook-form.ts'

/** Makes the pages with forms about a webhook's settings and its key. */
export function webhookEditPages(manageEndpoints: ManageEndpoints): readonly PageRoute[] {
  return [
    { method: 'get', path: '/webhooks/new', scope: 'admin', answer: async (visit) => ({ page: newPage(visit, EMPTY_FIELDS, {}) }) },
    { method: 'post', path: '/webhooks/new', scope: 'admin', answer: add, again: showAdded },
    { method: 'get', path: '/webhooks/:id/edit', scope: 'admin', answer: showForm },
    { method: 'post', path: '/webhooks/:id/edit', scope: 'admin', answer: change },
    { method: 'post', path: '/webhooks/:id/key', scope: 'admin', answer: replaceKey, again: showKey },
    { method: 'post', path: '/webhooks/:id/new-key-now', scope: 'admin', answer: endOldKey },
  ]

  async function add(visit: Visit): Promise<PageAnswer> {
    const fields = fieldsOf(visit.form)
    const sharedKey = fields.key === 'given' ? visit.form.get('sharedKey') : null
    return await orSayWhatIsWrong(
      async () => ({
        page: addedPage(visit, await manageEndpoints.add({ ...bodyOf(fields), sharedKey, from: startOf(fields) }, visit.by)),
        status: 201,
      }),
      async (errors) => newPage(visit, fields, errors),
    )
  }

  async function showAdded(visit: Visit, { action, shown }: FormerOrder): Promise<PageAnswer> {
    return { page: addedPage(visit, await manageEndpoints.keyed(action.target?.id ?? '', shown)), status: 201 }
  }

  async function showKey(visit: Visit, { shown }: FormerOrder): Promise<PageAnswer> {
    return { page: keyPage(visit, await manageEndpoints.keyed(visit.param('id'), shown)) }
  }

  async function showForm(visit: Visit): Promise<PageAnswer> {
    const state = await manageEndpoints.find(visit.param('id'))
    const fields = fieldsOfEndpoint(state.endpoint)
    return { page: editPage(visit, state, fields, { shown: JSON.stringify(fields) }) }
  }

  /** Changes only what the form has changed, so that it takes back nothing that somebody else has changed meanwhile. */
  async function change(visit: Visit): Promise<PageAnswer> {
    const id = visit.param('id')
    const before = await manageEndpoints.find(id)
    const shown = visit.form.get('shown')
    const now = fieldsOfEndpoint(before.endpoint)
    const { body, conflicts, fields } = changesIn(fieldsOf(visit.form), shown, now, before.endpoint)
    if (conflicts.length > 0) return { page: editPage(visit, before, fields, { shown: JSON.stringify(now), conflicts }), status: 409 }
    if (body === null) return { goTo: visit.to`/webhooks/${id}` }
    return await orSayWhatIsWrong(
      async () => {
        const { state, warnings } = await manageEndpoints.change(id, body, visit.by)
        if (warnings.length === 0) return { goTo: visit.to`/webhooks/${id}` }
        return { page: editPage(visit, state, fields, { shown: JSON.stringify(fieldsOfEndpoint(state.endpoint)), warnings }) }
      },
      async (errors) => editPage(visit, before, fields, { shown: shown || JSON.stringify(now), errors }),
    )
  }

  async function replaceKey(visit: Visit): Promise<PageAnswer> {
    await refuseStale(visit)
    const given = visit.form.get('sharedKey')
    const atOnce = visit.form.get('at') === 'now' ? { at: 'now' } : {}
    const body = { sharedKey: given === '' ? null : given, ...atOnce }
    return { page: keyPage(visit, await manageEndpoints.rotate(visit.param('id'), body, visit.by)) }
  }

  async function endOldKey(visit: Visit): Promise<PageAnswer> {
    await refuseStale(visit)
    await manageEndpoints.rotate(visit.param('id'), { at: 'now' }, visit.by)
    return { goTo: visit.to`/webhooks/${visit.param('id')}` }
  }

  /**
   * Refuses a form that is sent twice, for example when somebody reloads the page with the new key. The second form would replace that key.
   */
  async function refuseStale({ param, form }: Visit): Promise<void> {
    if (form.get('keys') === stampOfKeys(await manageEndpoints.find(param('id')))) return
    throw new AppError(
      'stale_form',
      'The key of this endpoint was replaced after the page was loaded, so nothing was done. Reload the page first.',
    )
  }
}

/** Runs the work of a form. If a field is wrong, answers with the form and the mistakes. */
async function orSayWhatIsWrong(work: () => Promise<PageAnswer>, formAgain: (errors: FieldErrors) => Promise<string>): Promise<PageAnswer> {
  try {
    return await work()
  } catch (error) {
    const errors = fieldErrors(error)
    if (errors === null) throw error
    return { page: await formAgain(errors), status: 400 }
  }
}
