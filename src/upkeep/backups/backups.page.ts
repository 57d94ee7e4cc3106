import { html, link, type Markup, type Part } from '../../console/portal/html.ts'
import { getPage, type PageRoute, postForm, renderPage, type Visit } from '../../console/portal/layout.ts'
import { asOfLine, crumbs, headline, settingsList, table } from '../../console/portal/parts.ts'
import { timeInSentence, timeInTable } from '../../console/portal/times.ts'
import { bytesText } from '../../core/domain/amounts.ts'
import { AppError, type ErrorCode } from '../../core/domain/errors.ts'
import type { UseCases } from '../../core/http/use-cases.ts'
import { goToJobs } from '../jobs/jobs.page.ts'
import type { BackupList, ManageBackups } from './manage-backups.ts'

/** The refusals of an order that the page shows next to its form. */
const REFUSALS: readonly ErrorCode[] = ['bad_request', 'not_backed_up', 'too_many_jobs']

/** The page with the backups in the folder, and a form to make one. */
export function backupPages({ manageBackups }: Pick<UseCases, 'manageBackups'>): readonly PageRoute[] {
  return [
    getPage('/backups', async (visit) => await answerPage(visit, manageBackups)),
    postForm(
      '/backups',
      async (visit) => {
        try {
          await manageBackups.start({ name: visit.form.get('name').trim() }, visit.by)
          return { goTo: visit.to`/jobs` }
        } catch (error) {
          if (!(error instanceof AppError) || !REFUSALS.includes(error.code)) throw error
          return { ...(await answerPage(visit, manageBackups, error.message)), status: error.code === 'bad_request' ? 422 : 409 }
        }
      },
      { again: goToJobs },
    ),
  ]
}

async function answerPage(visit: Visit, manageBackups: Pick<ManageBackups, 'list'>, refusal: string | null = null) {
  const list = await manageBackups.list().catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'not_backed_up') return error.message
    throw error
  })
  return {
    page: typeof list === 'string' ? page(visit, list, null) : page(visit, leadOf(list, visit.nowMs), contents(visit, list, refusal)),
  }
}

function page(visit: Visit, lead: Part, rest: Part): string {
  const { to, nowMs } = visit
  const main = html`${crumbs([to`/settings`, 'Settings'])}
${headline({ title: 'Backups', lead, asOf: asOfLine(nowMs, to`/backups`) })}
${rest}`
  return renderPage(visit, 'settings', 'Backups', main)
}

function leadOf({ last, failing, settings }: BackupList, nowMs: number): Part {
  if (settings.directory === null) return html`No backups are made: the config names no folder for them (<code>backup.directory</code>).`
  if (failing !== null) return html`No backup could be made since ${timeInSentence(failing.sinceMs, nowMs)}: ${failing.reason}.`
  return last === null ? 'No backup was made yet.' : html`The last one, ${last.name}, was made at ${timeInSentence(last.atMs, nowMs)}.`
}

function contents({ to, nowMs }: Visit, { settings, backups, unreadable }: BackupList, refusal: string | null): Markup | null {
  const { directory, cron, keep } = settings
  if (directory === null) return null
  return html`${settingsList([
    ['Folder', html`<code>${directory}</code>`],
    ['Scheduled', cron === null ? 'never' : html`<code>${cron}</code>, the newest ${keep} are kept`],
  ])}
<form class="filters" method="post" action="${to`/backups`.path}" aria-label="Back up now"><div><label for="backup-name">Name</label><input id="backup-name" name="name" required maxlength="80" autocomplete="off" spellcheck="false"></div><div><button class="btn" type="submit">Back up now</button></div></form>
${refusal === null ? null : html`<div class="note bad" role="alert">${refusal}</div>`}
<p>${link(to`/jobs`, 'Jobs')} shows how far a backup is.</p>
${
  unreadable !== null
    ? html`<div class="note bad" role="alert">The folder cannot be read: ${unreadable}.</div>`
    : backups.length === 0
      ? html`<div class="empty"><h2>There is no backup in the folder</h2></div>`
      : table({
          label: 'Backups, newest first',
          columns: ['Backup', { time: 'Made' }, { number: 'Size' }, 'Key'],
          rows: backups.map(({ name, madeAtMs, bytes, hasKey }) => [
            html`<code>${name}</code>`,
            timeInTable(madeAtMs, nowMs),
            bytesText(bytes),
            hasKey ? 'beside it' : 'elsewhere',
          ]),
        })
}`
}
