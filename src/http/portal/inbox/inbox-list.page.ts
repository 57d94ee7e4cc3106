import type { InboxPush } from '../../../domain/ingest/inbox.ts'
import { INBOX_STATES } from '../../../flow/admin/manage-inbox.ts'
import { link, withQuery } from '../addresses.ts'
import { html, type Markup, type Part } from '../html.ts'
import { renderPage } from '../layout.ts'
import type { Visit } from '../page-route.ts'
import { asOfLine, counted, countText, headline, icon, table } from '../parts.ts'
import { timeInTable } from '../times.ts'
import { options } from '../webhooks/webhook-names.ts'
import { pushMark, reasonInTable, STATE_NAMES } from './quarantine-words.ts'

/** Which pushes are listed. `all`: in any state. */
export type Shown = InboxPush['state'] | 'all'

export interface InboxListing {
  readonly shown: Shown
  readonly isFirst: boolean
  readonly pushes: readonly InboxPush[]
  readonly next: string | null
}

/** Received pushes, the newest first. Those in quarantine are also grouped by what is wrong with them. */
export function inboxPage(visit: Visit, listing: InboxListing): string {
  const { to, nowMs, person } = visit
  const { shown, isFirst, pushes, next } = listing
  const isQuarantine = shown === 'quarantined'
  const hasTrouble = isQuarantine && pushes.length > 0
  const main = html`${headline({ title: 'Inbox', lead: leadOf(listing), asOf: asOfLine(nowMs, withQuery(to`/inbox`, { state: shown })) })}
${
  hasTrouble && isFirst
    ? html`<p>Usually the carrier has changed its format. Read one of each kind; install a version of the relay that reads it; then reprocess.</p>
${groupsOf(visit, pushes)}
<h2>Pushes</h2>`
    : null
}
<form class="filters" role="search" action="${to`/inbox`.path}" aria-label="Inbox">
<div><label for="s">State</label><select id="s" name="state">${options([...INBOX_STATES.toReversed().map((state) => [state, STATE_NAMES[state]] as const), ['all', 'any']], shown)}</select></div>
<div><button class="btn" type="submit">Show</button></div>
</form>
${pushes.length > 0 ? rowsOf(visit, listing) : next === null ? nothing(visit, shown) : null}
${next === null ? null : html`<p class="more"><span>Newest first</span>${link(withQuery(to`/inbox`, { state: shown, cursor: next }), 'Older')}</p>`}`
  const title = hasTrouble && isFirst ? `${countOf(listing)} in quarantine · Inbox` : 'Inbox'
  return renderPage(visit, { title, section: 'inbox', person, main })
}

function countOf({ pushes, next }: InboxListing): string {
  return next === null ? countText(pushes.length) : `${countText(pushes.length)} or more`
}

function leadOf(listing: InboxListing): Part {
  const { shown, isFirst, pushes, next } = listing
  if (shown !== 'quarantined')
    return pushes.length === 0 ? 'None is shown.' : `${counted(pushes.length, 'push', 'pushes')} on this page, the newest first.`
  if (pushes.length === 0 && next === null && isFirst) return html`${icon('ok', 'ok')} Nothing is in quarantine.`
  if (!isFirst) return `${counted(pushes.length, 'push', 'pushes')} in quarantine on this page.`
  const many = next === null && pushes.length === 1 ? '1 push is' : `${countOf(listing)} pushes are`
  return html`<span class="warn-text">${many} in quarantine</span>: signed by the carrier, but not understood.`
}

/** The reasons, that of the newest push first. */
function groupsOf({ to, nowMs }: Visit, pushes: readonly InboxPush[]): Markup {
  const groups = new Map<string, readonly [newest: InboxPush, ...older: InboxPush[]]>()
  for (const push of pushes) {
    const group = groups.get(push.reason ?? '')
    groups.set(push.reason ?? '', group === undefined ? [push] : [...group, push])
  }
  return table({
    label: 'By reason',
    columns: [
      { title: 'Reason' },
      { title: 'Pushes', isNumber: true },
      { title: 'First', isTime: true },
      { title: 'Last', isTime: true },
      { title: 'Newest' },
    ],
    rows: [...groups].map(([reason, group]) => [
      reasonInTable(reason),
      countText(group.length),
      timeInTable((group.at(-1) ?? group[0]).receivedAtMs, nowMs),
      timeInTable(group[0].receivedAtMs, nowMs),
      link(to`/inbox/${group[0].inboxId}`, `Push ${group[0].inboxId}`),
    ]),
  })
}

function rowsOf({ to, nowMs }: Visit, { shown, pushes }: InboxListing): Markup {
  const isQuarantine = shown === 'quarantined'
  return table({
    label: isQuarantine ? 'Pushes in quarantine, newest first' : 'Pushes, newest first',
    columns: [
      { title: 'Push' },
      { title: 'Received', isTime: true },
      { title: isQuarantine ? 'What is wrong' : 'State' },
      { title: 'Came again', isNumber: true },
      { title: 'Size', isNumber: true },
    ],
    rows: pushes.map((push) => [
      link(to`/inbox/${push.inboxId}`, `Push ${push.inboxId}`),
      timeInTable(push.receivedAtMs, nowMs),
      isQuarantine
        ? reasonInTable(push.reason ?? '')
        : html`${pushMark(push)}${push.reason === null ? null : html`<small>${reasonInTable(push.reason)}</small>`}`,
      push.duplicates === 0 ? 'no' : counted(push.duplicates, 'time', 'times'),
      push.bodyBytes === null ? 'not kept' : `${countText(push.bodyBytes)} B`,
    ]),
  })
}

function nothing({ to }: Visit, shown: Shown): Markup {
  if (shown !== 'all') {
    const title = shown === 'quarantined' ? 'Every push was understood' : 'Nothing found'
    return html`<div class="empty"><h2>${title}</h2><p>${link(withQuery(to`/inbox`, { state: 'all' }), 'Show all pushes')}</p></div>`
  }
  return html`<div class="empty"><h2>No push has come yet</h2><p>The carrier sends pushes to <code>/webhooks/status</code> of the relay’s public address. Each is listed here as it was received.</p></div>`
}
