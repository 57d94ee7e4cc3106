import type { SentForm } from '../../domain/admin/operator-action.ts'
import type { GiveOnce } from '../../flow/admin/give-once.ts'
import type { PageAnswer, PageRoute, Visit } from './page-route.ts'

/** Answers a form. If it was sent before, its order is not carried out again. `path`: the address of the form. */
export async function answerOnce(
  giveOnce: GiveOnce<PageAnswer>,
  { sent, route, visit, path }: { readonly sent: SentForm; readonly route: PageRoute; readonly visit: Visit; readonly path: string },
): Promise<PageAnswer> {
  const { again = async () => ({ goTo: { path: path.replace(/\/[^/]+$/, '') } }) } = route
  return await giveOnce(sent, {
    give: () => route.answer(visit),
    again: (former) => again(visit, former),
    isRefused: (answer) => 'page' in answer && (answer.status ?? 200) >= 400,
  })
}
