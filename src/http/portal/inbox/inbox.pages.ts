import { AppError } from '../../../domain/errors.ts'
import { INBOX_STATES, type ManageInbox } from '../../../flow/admin/manage-inbox.ts'
import type { PageAnswer, PageRoute, Visit } from '../page-route.ts'
import { inboxPage } from './inbox-list.page.ts'
import { type PushSaid, pushPage } from './push.page.ts'

export interface InboxPagesOptions {
  readonly manageInbox: ManageInbox
}

const LIST_MAX = 100

/** The pages about received pushes: their list, and one with its bytes. */
export function inboxPages({ manageInbox }: InboxPagesOptions): readonly PageRoute[] {
  return [
    { method: 'get', path: '/inbox', scope: 'admin', answer: list },
    { method: 'get', path: '/inbox/:id', scope: 'admin', answer: (visit) => show(visit, null) },
    { method: 'get', path: '/inbox/:id/body', scope: 'admin', answer: download },
    { method: 'post', path: '/inbox/:id/reprocess', scope: 'admin', answer: reprocess },
  ]

  async function list(visit: Visit): Promise<PageAnswer> {
    const [asked, cursor] = [visit.query('state'), visit.query('cursor')]
    if (!/^\d{0,15}$/.test(cursor)) throw new AppError('not_found', 'The list has no such page.')
    const state = asked === 'all' ? null : (INBOX_STATES.find((one) => one === asked) ?? 'quarantined')
    const found = await manageInbox.list({ state, cursor: cursor === '' ? null : Number(cursor), limit: LIST_MAX })
    return { page: inboxPage(visit, { ...found, shown: state ?? 'all', isFirst: cursor === '' }) }
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
    try {
      return await show(visit, await manageInbox.reprocess(visit.param('id'), visit.by))
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'not_reprocessable') throw error
      return await show(visit, { kind: 'refused', because: error.message })
    }
  }
}
