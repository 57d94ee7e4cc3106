import { html, type Markup, type Part } from '../../console/portal/html.ts'
import { getPage, type PageRoute, renderPage, type Visit } from '../../console/portal/layout.ts'
import { asOfLine, crumbs, headline, olderLink, table } from '../../console/portal/parts.ts'
import { timeInTable } from '../../console/portal/times.ts'
import { counted, countText } from '../../core/domain/amounts.ts'
import { AppError } from '../../core/domain/errors.ts'
import { receivedText } from '../../core/domain/text.ts'
import type { UseCases } from '../../core/http/use-cases.ts'
import { describeCause } from './mismatch-causes.rules.ts'
import { type KeptRefusal, REFUSALS_KEPT } from './refusals.rules.ts'

interface RefusalsListing {
  readonly refusals: readonly KeptRefusal[]
  readonly next: string | null
  readonly isFirst: boolean
}

const LIST_MAX = 100

/** Makes the page that lists pushes whose signature did not match, newest first, each with the causes that the relay found. */
export function refusalPages({ refusals }: Pick<UseCases, 'refusals'>): readonly PageRoute[] {
  return [
    getPage('/inbox/refusals', async (visit) => {
      const cursor = visit.query('cursor')
      if (!/^\d{0,15}$/.test(cursor)) throw new AppError('not_found', 'The list has no such page.')
      const found = await refusals({ cursor: cursor === '' ? null : Number(cursor), limit: LIST_MAX })
      return { page: refusalsPage(visit, { ...found, isFirst: cursor === '' }) }
    }),
  ]
}

function refusalsPage(visit: Visit, { refusals, next, isFirst }: RefusalsListing): string {
  const { to, nowMs } = visit
  const lead = refusals.length === 0 && isFirst ? 'No push was refused for its signature.' : leadOf(refusals)
  const main = html`${crumbs([to`/inbox`, 'Inbox'])}
${headline({ title: 'Refused signatures', lead, asOf: asOfLine(nowMs, to`/inbox/refusals`) })}
${
  refusals.length === 0
    ? html`<div class="empty"><h2>${isFirst ? 'None was refused' : 'There are no older ones'}</h2></div>`
    : html`<p>Anybody can send such pushes, so the relay examines at most one a second. It keeps the reason, the sender and the size of the last ${countText(REFUSALS_KEPT)}, never the body. To examine another push, save its exact bytes and run <code>parcel-relay verify FILE --signature VALUE</code>.</p>
${rowsOf(visit, refusals)}`
}
${olderLink(to`/inbox/refusals`, next)}`
  return renderPage(visit, 'inbox', 'Refused signatures', main)
}

function leadOf(refusals: readonly KeptRefusal[]): Part {
  const explained = refusals.filter(({ verdict }) => verdict === 'explained').length
  if (explained === 0) return 'The relay found no cause: the sender probably signs with another key.'
  return html`<span class="warn-text">${counted(explained, 'refusal has', 'refusals have')} a known cause</span>: the sender has the right key, but signs in another way than the relay expects.`
}

function rowsOf({ nowMs }: Visit, refusals: readonly KeptRefusal[]): Markup {
  return table({
    label: 'Refused signatures, newest first',
    columns: [{ time: 'Received' }, 'From', 'Why', 'Key', 'Sender', { number: 'Size' }],
    rows: refusals.map(({ atMs, address, causes, key, headers, body }) => [
      timeInTable(atMs, nowMs),
      html`<code>${receivedText(address)}</code>`,
      html`${causes.map((cause) => html`<div>${receivedText(describeCause(cause))}</div>`)}`,
      key === null ? 'not known' : receivedText(key),
      receivedText(headers['user-agent'] ?? 'not told'),
      body === null ? 'not read' : `${countText(body.bytes)} B`,
    ]),
  })
}
