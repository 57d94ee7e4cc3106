import { AppError } from '../../../core/domain/errors.ts'
import { receivedText } from '../../../core/domain/text.ts'
import type { Reloaded } from '../../../core/flow/ports.ts'
import type { UseCases } from '../../../core/http/use-cases.ts'
import { buttonLink, html, type Markup } from '../html.ts'
import { type PageAnswer, type PageRoute, renderPage, type Visit } from '../layout.ts'
import { actionButton, crumbs, headline, icon } from '../parts.ts'

/** Makes the page that has the relay read its config again. */
export function reloadPages({ reloadConfig, replica }: Pick<UseCases, 'reloadConfig' | 'replica'>): readonly PageRoute[] {
  return [
    { method: 'get', path: '/reload', scope: 'admin', answer: async (visit) => ({ page: reloadPage(visit, replica, null) }) },
    { method: 'post', path: '/reload', scope: 'admin', answer: reload, again: async ({ to }) => ({ goTo: to`/reload` }) },
  ]

  async function reload(visit: Visit): Promise<PageAnswer> {
    try {
      return { page: reloadPage(visit, replica, reloadedNote(await reloadConfig(visit.by))) }
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'not_reloadable') throw error
      return { page: reloadPage(visit, replica, refusedNote(error)), status: 409 }
    }
  }
}

function reloadPage(visit: Visit, replica: string, note: Markup | null): string {
  const { to, person } = visit
  const main = html`${crumbs([to`/settings`, 'Settings'])}
${headline({ title: 'Reload the config', lead: 'Reads the config file again, and the files that it names. If it has mistakes, nothing changes.', actions: actionButton(to`/reload`, note === null ? 'Reload the config' : 'Reload it again', 'main') })}
${note}
<p>It reloads <strong>${replica}</strong>, the replica that shows this page; each replica reads its own file. A secret that comes from a variable of the environment changes only by a restart. <code class="command">parcel-relay reload</code> and SIGHUP do the same.</p>
<p>${buttonLink(to`/check`, 'Check this deployment')}</p>`
  return renderPage(visit, { title: 'Reload the config', section: 'settings', person, main })
}

function reloadedNote({ changed, needsRestart, problems }: Reloaded): Markup {
  const isGood = needsRestart.length === 0 && problems.length === 0
  return html`<div class="note ${isGood ? 'ok' : 'warn'}" role="status">${icon(isGood ? 'ok' : 'warn', isGood ? 'ok' : 'warn')} <strong>${changed.length === 0 ? 'The config is reloaded. Nothing has changed.' : 'The config is reloaded. In effect now:'}</strong>
${listOf(changed)}${needsRestart.length === 0 ? null : html`<p>These have changed too, and need a restart:</p>${listOf(needsRestart)}`}${
  problems.length === 0 ? null : html`<p>These files could not be used; their earlier content stays in use:</p>${listOf(problems)}`
}</div>`
}

function refusedNote({ message, facts }: AppError): Markup {
  return html`<div class="note bad" role="alert">${icon('bad', 'bad')} <strong>Nothing was changed.</strong> ${message} ${listOf(facts?.problems === undefined ? [] : [facts.problems].flat().map(String))}</div>`
}

function listOf(items: readonly string[]): Markup | null {
  return items.length === 0 ? null : html`<ul>${items.map((item) => html`<li class="answer">${receivedText(item)}</li>`)}</ul>`
}
