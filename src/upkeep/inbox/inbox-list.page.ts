import { html, link, type Markup, type Part, withQuery } from '../../console/portal/html.ts'
import { renderPage, type Visit } from '../../console/portal/layout.ts'
import {
  actionButton,
  asOfLine,
  headline,
  icon,
  olderLink,
  type SentAgain,
  type StateKind,
  sentAgainNote,
  stateMark,
  table,
} from '../../console/portal/parts.ts'
import { options, type TimeFilter, timeFields, timeInTable } from '../../console/portal/times.ts'
import { counted, countText } from '../../core/domain/amounts.ts'
import type { RecordOutcome } from '../../core/domain/history/recording.ts'
import { type BodyFault, REASON_CHOICES, reasonSentence, reasonText } from '../../core/domain/ingest/fault-in-body.ts'
import type { HeldGroup, InboxPush } from '../../core/domain/ingest/inbox.ts'
import { receivedText } from '../../core/domain/text.ts'
import type { INBOX_STATES, ManageInbox } from './manage-inbox.ts'

/** The state of the listed pushes. `all`: any state. */
export type Shown = InboxPush['state'] | 'all'

export interface InboxFilters extends TimeFilter {
  readonly parcel: string
  readonly reason: string
}

/** Several pushes in quarantine to dismiss: those with a reason, or those that a page has listed. */
export type DismissChoice = { readonly reason: string } | { readonly ids: readonly string[] }

/** What the page says about an order to reprocess or dismiss several pushes. Null: there was no order. */
export type InboxSaid =
  | { readonly kind: 'counted'; readonly count: number; readonly choice: DismissChoice }
  | { readonly kind: 'dismissed'; readonly count: number }
  | { readonly kind: 'reprocessed'; readonly count: number; readonly outcomes: Readonly<Record<string, number>> }
  | { readonly kind: 'job'; readonly jobId: number; readonly does: 'reprocesses' | 'dismisses' }
  | SentAgain
  | { readonly kind: 'refused'; readonly because: string }
  | null

export interface InboxListing {
  readonly shown: Shown
  readonly filters: InboxFilters
  /** What is wrong with the filters, as a sentence. */
  readonly mistake: string | null
  readonly isFirst: boolean
  readonly pushes: readonly InboxPush[]
  readonly next: string | null
  /** All pushes in quarantine by reason, whatever the filters are. */
  readonly groups: readonly HeldGroup[]
  readonly said: InboxSaid
  /** The senders of pushes with a wrong signature, the latest first. */
  readonly refused: Awaited<ReturnType<ManageInbox['refusedSenders']>>
}

export function inboxPage(visit: Visit, listing: InboxListing): string {
  const { to, nowMs } = visit
  const { shown, filters, isFirst, pushes, next, groups, mistake } = listing
  const hasTrouble = groups.length > 0
  const total = groups.reduce((sum, { count }) => sum + count, 0)
  const here = withQuery(to`/inbox`, { state: shown, ...filters })
  const actions = hasTrouble ? actionButton(to`/inbox`, `Reprocess all ${countText(total)}`) : null
  const main = html`${headline({ title: 'Inbox', lead: leadOf(total), actions, asOf: asOfLine(nowMs, here) })}
${noteOf(visit, listing)}${
  hasTrouble && isFirst && shown === 'quarantined'
    ? html`<p>Usually the carrier has changed its format. Read one push of each kind, and ask the carrier whether it meant to change it. If the carrier returns to its old format, fetch the parcels that the pushes name, with <code>parcel-relay inbox --refresh</code>, and dismiss the pushes. If the new format stays, install a version of the relay that reads it, then reprocess.</p>
${groupsOf(visit, groups)}`
    : null
}
<h2>Pushes</h2>
<form class="filters" role="search" action="${to`/inbox`.path}" aria-label="Inbox">
<div><label for="s">State</label><select id="s" name="state">${options([...STATES.map((state) => [state, STATE_NAMES[state]] as const), ['all', 'any']], shown)}</select></div>
<div><label for="p">Parcel</label><input id="p" name="parcel" value="${filters.parcel}" autocomplete="off" spellcheck="false"></div>
<div><label for="r">Reason</label><select id="r" name="reason">${options([['', 'any'], ...REASON_CHOICES], filters.reason)}</select></div>
${timeFields(filters)}
<div><button class="btn" type="submit">Show</button></div>
</form>
${mistake !== null ? html`<p class="error" role="alert">${mistake}</p>` : pushes.length > 0 ? rowsOf(visit, listing) : next === null ? nothing(visit, listing) : html`<p>None on this page; there may be older ones.</p>`}
${shown === 'quarantined' && pushes.length > 0 && Object.values(filters).some((filter) => filter !== '') ? actionButton(to`/inbox`, `Dismiss the ${counted(pushes.length, 'push', 'pushes')} listed here`, '', { ...dismissFields({ ids: pushes.map(({ inboxId }) => String(inboxId)) }), do: 'count' }) : null}
${olderLink(to`/inbox`, next, { state: shown, ...filters })}
${refusedSection(visit, listing)}`
  const title = hasTrouble ? `${countText(total)} in quarantine · Inbox` : 'Inbox'
  return renderPage(visit, 'inbox', title, main)
}

/** The states in the order in which the filter offers them. */
const STATES = ['quarantined', 'recorded', 'expired', 'dismissed'] as const satisfies readonly (typeof INBOX_STATES)[number][]

function leadOf(total: number): Part {
  if (total === 0) return html`${icon('ok', 'ok')} Nothing is in quarantine.`
  return html`<span class="warn-text">${counted(total, 'push is', 'pushes are')} in quarantine</span>: signed by the carrier, but not understood. They are kept until somebody decides.`
}

function noteOf({ to, nowMs }: Visit, { said }: InboxListing): Markup | null {
  if (said === null) return null
  if (said.kind === 'again') return sentAgainNote(said, nowMs)
  if (said.kind === 'refused') return html`<div class="note bad" role="alert"><strong>Nothing was done.</strong> ${said.because}</div>`
  if (said.kind === 'job')
    return html`<div class="note ok" role="status"><strong>There are many, so job ${said.jobId} ${said.does} them</strong> in the background. ${link(to`/jobs`, 'Jobs')} shows how far it is.</div>`
  if (said.kind === 'counted') return confirmation(to, said)
  if (said.kind === 'dismissed')
    return html`<div class="note ok" role="status"><strong>${counted(said.count, 'push is', 'pushes are')} dismissed.</strong> ${link(withQuery(to`/inbox`, { state: 'dismissed' }), 'Show what is dismissed')}</div>`
  const { recorded = 0, duplicate = 0, expired = 0 } = said.outcomes
  const understood = recorded + duplicate
  const left = said.count - understood - expired
  if (understood === 0 && left > 0)
    return html`<div class="note warn" role="status"><strong>${counted(left, 'push is', 'pushes are')} still not understood</strong> and in quarantine.</div>`
  if (said.count === 0) return html`<div class="note" role="status"><strong>No push is left to reprocess.</strong></div>`
  return html`<div class="note ${understood > 0 ? 'ok' : 'warn'}" role="status"><strong>${counted(understood, 'push is', 'pushes are')} recorded</strong>${
    left > 0 ? html`, ${counted(left, 'is', 'are')} still not understood` : null
  }${expired > 0 ? html`, ${counted(expired, 'is', 'are')} too old to record` : null}.</div>`
}

/** Asks before several pushes are given up. */
function confirmation(to: Visit['to'], { count, choice }: NonNullable<InboxSaid> & { readonly kind: 'counted' }): Markup {
  if (count === 0) return html`<div class="note" role="status"><strong>No push is left to dismiss.</strong></div>`
  const amount = counted(count, 'push', 'pushes')
  const which = 'reason' in choice ? `: ${reasonText(choice.reason)}` : ' of the list'
  const fields = { ...dismissFields(choice), do: 'dismiss', counted: String(count) }
  return html`<div class="note warn" role="alert"><p><strong>Dismiss ${amount}${which}?</strong> They are given up: no history changes, and no webhook gets them. They stay listed as long as their bytes are kept.</p>
${actionButton(to`/inbox`, `Dismiss ${amount}`, 'danger', fields)} ${link(to`/inbox`, 'Keep them')}</div>`
}

function dismissFields(choice: DismissChoice): Readonly<Record<string, string>> {
  return 'reason' in choice ? { reason: choice.reason } : { ids: choice.ids.join(' ') }
}

function groupsOf({ to, nowMs }: Visit, groups: readonly HeldGroup[]): Markup {
  return table({
    label: 'By reason',
    columns: ['Reason', { number: 'Pushes' }, { time: 'First' }, { time: 'Last' }, 'Newest', { hidden: 'Do' }],
    rows: groups.map(({ reason, count, first, last }) => [
      reasonText(reason ?? ''),
      countText(count),
      timeInTable(first.receivedAtMs, nowMs),
      timeInTable(last.receivedAtMs, nowMs),
      link(to`/inbox/${last.inboxId}`, `Push ${last.inboxId}`),
      html`<form method="post" action="${to`/inbox`.path}"><input type="hidden" name="reason" value="${reason ?? ''}"><button class="btn small" type="submit" aria-label="Reprocess: ${reasonText(reason ?? '')}">Reprocess</button> <button class="btn small" type="submit" name="do" value="count" aria-label="Dismiss: ${reasonText(reason ?? '')}">Dismiss</button></form>`,
    ]),
  })
}

function rowsOf({ to, nowMs }: Visit, { shown, pushes }: InboxListing): Markup {
  const isQuarantine = shown === 'quarantined'
  const hasFaults = pushes.some(({ fault }) => fault !== null)
  const parcelOf = ([identifier]: readonly string[], { state }: InboxPush): Part => {
    if (identifier === undefined) return 'unknown'
    return state === 'recorded' ? link(to`/parcels/${identifier}`, identifier) : html`<span class="id">${receivedText(identifier)}</span>`
  }
  return table({
    label: isQuarantine ? 'Pushes in quarantine, newest first' : 'Pushes, newest first',
    columns: [
      'Push',
      { time: 'Received' },
      isQuarantine ? 'What is wrong' : 'State',
      ...(hasFaults ? ['The place'] : []),
      'Parcel',
      'Status',
      { number: 'Size' },
    ],
    rows: pushes.map((push) => [
      html`${link(to`/inbox/${push.inboxId}`, `Push ${push.inboxId}`)}${push.duplicates === 0 ? null : html` <small>came again ${counted(push.duplicates, 'time', 'times')}</small>`}`,
      timeInTable(push.receivedAtMs, nowMs),
      isQuarantine
        ? reasonText(push.reason ?? '')
        : html`${pushMark(push)}${push.reason === null ? null : html`<small>${reasonText(push.reason)}</small>`}`,
      ...(hasFaults ? [push.fault === null ? '' : faultInTable(push.fault)] : []),
      parcelOf(push.identifiers, push),
      push.status === null ? 'unknown' : receivedText(push.status),
      push.bodyBytes === null ? 'not kept' : `${countText(push.bodyBytes)} B`,
    ]),
  })
}

function refusedSection({ to, nowMs }: Visit, { refused }: InboxListing): Markup {
  if (refused.length === 0)
    return html`<h2 id="refused">Refused signatures</h2>
<p class="dim">None since the relay was started. ${link(to`/inbox/refusals`, 'Earlier ones')}</p>`
  return html`<h2 id="refused">Refused signatures</h2>
<p>Anybody can send these. The relay does not keep them. It notes who sent the last of them, and examines some: ${link(to`/inbox/refusals`, 'Why they do not match')}.</p>
${table({
  label: 'Refused signatures',
  columns: ['From', { time: 'Last' }, { time: 'First' }, { number: 'Times' }],
  rows: refused.map(({ address, count, firstAtMs, lastAtMs }) => [
    html`<code>${receivedText(address)}</code>`,
    timeInTable(lastAtMs, nowMs),
    timeInTable(firstAtMs, nowMs),
    countText(count),
  ]),
})}`
}

function nothing({ to }: Visit, { shown, filters, isFirst }: InboxListing): Markup {
  const isFiltered = Object.values(filters).some((filter) => filter !== '')
  if (isFiltered || shown !== 'all' || !isFirst) {
    const title = shown === 'quarantined' && !isFiltered ? 'Every push was understood' : 'Nothing found'
    return html`<div class="empty"><h2>${title}</h2>${
      filters.parcel === '' ? null : html`<p>No push in this state names <code>${filters.parcel}</code>.</p>`
    }<p>${link(withQuery(to`/inbox`, { state: 'all' }), 'Show all pushes')}</p></div>`
  }
  return html`<div class="empty"><h2>No push has come yet</h2><p>The carrier sends pushes to <code>/webhooks/status</code> of the relay’s public address. Each is listed here as it was received.</p></div>`
}

type State = InboxPush['state']

const MARKS: Readonly<Record<State, readonly [kind: StateKind, word: string]>> = {
  quarantined: ['warn', 'in quarantine'],
  recorded: ['ok', 'recorded'],
  expired: ['off', 'too old'],
  dismissed: ['off', 'dismissed'],
}

export const STATE_NAMES: Readonly<Record<State, string>> = {
  quarantined: 'in quarantine',
  recorded: 'recorded',
  expired: 'too old to record',
  dismissed: 'dismissed',
}

export function pushMark({ state }: InboxPush): Markup {
  const [kind, word] = MARKS[state]
  return stateMark(kind, word)
}

/** Shows the wrong member or, if the fault is not in a single member, the wrong bytes. */
export function faultInTable({ member, isMissing, from, found, unknown }: BodyFault): Markup {
  if (member === null && found === '') return html`<small>ends after ${counted(from, 'byte', 'bytes')}</small>`
  if (member === null) return html`<span class="answer">${receivedText(found)}</span> <small>byte ${countText(from)}</small>`
  if (isMissing) return html`<code>${receivedText(member)}</code> is missing${unknownNames(unknown)}`
  return html`<span class="answer">${receivedText(member)}: ${receivedText(found)}</span>`
}

/** Lists names that the relay does not know. If a member is missing, the carrier may have renamed it to one of these. */
function unknownNames(unknown: readonly string[]): Markup | null {
  return unknown.length === 0
    ? null
    : html`, and <code>${receivedText(unknown.join(', '))}</code> ${unknown.length === 1 ? 'is' : 'are'} unknown`
}

/** Describes the wrong member, or the wrong bytes, in a sentence. */
export function faultSentence({ member, isMissing, from, to, found, unknown }: BodyFault): Markup {
  const bytes = to - from === 1 || isMissing ? `byte ${countText(from)}` : `bytes ${countText(from)} to ${countText(to - 1)}`
  if (member === null) return found === '' ? html`It ends after ${counted(from, 'byte', 'bytes')}.` : html`The fault is at ${bytes}.`
  return isMissing
    ? html`<code>${receivedText(member)}</code> is missing${unknownNames(unknown)}: the object ends at ${bytes}.`
    : html`The fault is in <code>${receivedText(member)}</code>, ${bytes}.`
}

export function outcomeText(outcome: RecordOutcome): Markup {
  if (outcome.kind === 'recorded') return html`<strong>It is recorded</strong> with the time at which it was received, and webhooks get it.`
  if (outcome.kind === 'duplicate') return html`<strong>It is recorded</strong>: the relay knew its event already.`
  if (outcome.kind === 'erased') return html`<strong>It is about a parcel that was erased</strong>, so it was removed.`
  if (outcome.kind === 'expired') return html`<strong>It is still too old to record</strong> (retention.history).`
  return html`<strong>It is still not understood.</strong> ${reasonSentence(outcome.reason)}`
}
