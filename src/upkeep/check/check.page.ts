import { html, type Markup, type Part } from '../../console/portal/html.ts'
import { getPage, type PageRoute, postForm, renderPage, type Visit } from '../../console/portal/layout.ts'
import { actionButton, crumbs, headline, type StateKind, sentenceOnPage, stateMark, table } from '../../console/portal/parts.ts'
import type { Verdict } from '../../console/problems/concern.ts'
import { counted } from '../../core/domain/amounts.ts'
import { receivedText } from '../../core/domain/text.ts'
import type { UseCases } from '../../core/http/use-cases.ts'
import type { CheckLine, CheckName } from './check.rules.ts'

/** Makes the page that checks the deployment. A check logs in at the carrier and sends a push, so only a button starts it. */
export function checkPages({ check }: Pick<UseCases, 'check'>): readonly PageRoute[] {
  return [
    getPage('/check', async (visit) => ({ page: checkPage(visit, null) })),
    postForm('/check', async (visit) => ({ page: checkPage(visit, await check()) })),
  ]
}

function checkPage(visit: Visit, lines: readonly CheckLine[] | null): string {
  const { to } = visit
  const main = html`${crumbs([to`/settings`, 'Settings'])}
${headline({ title: 'Check', lead: leadOf(lines), actions: actionButton(to`/check`, lines === null ? 'Check this deployment' : 'Check again', 'main') })}
${
  lines === null
    ? html`<p>It reads the config and the files that it names, looks at the store and its disk, logs in at the carrier and asks it a question (two calls of the budget), compares the clocks, sends this relay a signed push that is not kept, and connects to each webhook without sending anything. <code class="command">parcel-relay check</code> does the same.</p>`
    : linesTable(lines, visit.nowMs)
}`
  return renderPage(visit, 'settings', 'Check', main)
}

function leadOf(lines: readonly CheckLine[] | null): Part {
  if (lines === null) return 'Will this deployment work, and if not, why not?'
  const [failures, warnings] = (['failed', 'warning'] as const).map((state) => lines.filter((line) => line.state === state).length)
  if (failures !== undefined && failures > 0)
    return html`<span class="bad-text">${counted(failures, 'thing does', 'things do')} not work.</span>`
  if (warnings !== undefined && warnings > 0)
    return html`It works. <span class="warn-text">${counted(warnings, 'thing needs', 'things need')} a look.</span>`
  return 'Everything that was tried works.'
}

const NAMES: Readonly<Record<CheckName, string>> = {
  relay: 'Relay',
  config: 'Config',
  keys: 'Keys',
  store: 'Store',
  disk: 'Disk',
  files: 'Files',
  open_files: 'Open files',
  ports: 'Ports',
  certificate: 'Certificate',
  credentials: 'Login at the carrier',
  question: 'Question to the carrier',
  clock: 'Clock',
  push: 'Push to itself',
  endpoint: 'Webhook',
  retention: 'Retention',
  erasure: 'Erasure',
  backup: 'Backup',
}
const MARKS: Readonly<Record<Verdict['state'], readonly [StateKind, string]>> = {
  failed: ['bad', 'does not work'],
  warning: ['warn', 'look at it'],
  ok: ['ok', 'works'],
  skipped: ['none', 'not tried'],
}

function linesTable(lines: readonly CheckLine[], nowMs: number): Markup {
  return table({
    label: 'Check',
    columns: ['What', 'State', 'Found'],
    rows: lines.map(({ name, subject, state, message }) => [
      html`${NAMES[name]}${subject === null ? null : html` <small>${receivedText(subject)}</small>`}`,
      stateMark(...MARKS[state]),
      sentenceOnPage(receivedText(message), nowMs),
    ]),
  })
}
