import { isUtf8 } from 'node:buffer'
import type { RecordOutcome } from '../../../domain/history/recording.ts'
import type { InspectedPush } from '../../../domain/ingest/inbox.ts'
import { link, withQuery } from '../addresses.ts'
import { html, type Markup } from '../html.ts'
import { renderPage } from '../layout.ts'
import type { Visit } from '../page-route.ts'
import { actionButton, asOfLine, counted, countText, crumbs, facts, headline } from '../parts.ts'
import { indentJson, receivedText, SHOWN_MAX } from '../received-text.ts'
import { fullTime } from '../times.ts'
import { outcomeText, pushMark, reasonSentence, STATE_NAMES } from './quarantine-words.ts'

/** What the page says of what was just done; null: nothing was. `refused`: it could not be done. */
export type PushSaid = RecordOutcome | { readonly kind: 'refused'; readonly because: string } | null

export interface OnePush {
  readonly push: InspectedPush
  readonly isIndented: boolean
  readonly said: PushSaid
}

/** One push: what is wrong with it, its bytes as text, and how to reprocess it. */
export function pushPage(visit: Visit, { push, isIndented, said }: OnePush): string {
  const { to, nowMs, person } = visit
  const { inboxId, state, reason, body } = push
  const canReprocess = state !== 'recorded' && body !== null
  const main = html`${crumbs([to`/inbox`, 'Inbox'])}
${headline({
  title: `Push ${inboxId}`,
  state: pushMark(push),
  lead: leadOf(push),
  actions: canReprocess ? actionButton(to`/inbox/${inboxId}/reprocess`, 'Reprocess', 'main') : null,
  asOf: asOfLine(nowMs, to`/inbox/${inboxId}`),
})}
${noteOf(said)}
${facts([
  ['Received', fullTime(push.receivedAtMs, nowMs)],
  ['Signed with', html`key ${push.keyIndex + 1} <small>of webhook.sharedKeys</small>`],
  ['Content-Encoding', push.contentEncoding ?? 'none'],
  ['Body', push.bodyBytes === null ? 'no longer kept' : counted(push.bodyBytes, 'byte', 'bytes')],
  ['Came again', push.duplicates === 0 ? 'no' : counted(push.duplicates, 'time', 'times')],
])}
<h2>Body${body === null ? null : isIndented ? ', indented' : ', as received'}</h2>
${body === null ? html`<p>It is no longer kept (retention.raw).</p>` : bodyOf(visit, push, body, isIndented)}
${canReprocess ? html`<p class="dim">Reprocess reads it again with the version that runs now. If it is understood, its entry is recorded with this time of receipt, and webhooks get it.</p>` : null}`
  const title = reason === null ? `Push ${inboxId} · Inbox` : `Push ${inboxId}, ${STATE_NAMES[state]} · Inbox`
  return renderPage(visit, { title, section: 'inbox', person, main })
}

function leadOf({ state, reason }: InspectedPush): string {
  if (state === 'recorded') return 'It was understood, and its event is part of its parcel’s history.'
  if (state === 'expired') return 'Its event is older than retention.history, so it was not recorded.'
  return reason === null ? 'It was not understood.' : reasonSentence(reason)
}

function noteOf(said: PushSaid): Markup | null {
  if (said === null) return null
  if (said.kind === 'refused') return html`<div class="note bad" role="alert"><strong>Nothing was done.</strong> ${said.because}</div>`
  const isGood = said.kind === 'recorded' || said.kind === 'duplicate'
  return isGood
    ? html`<div class="note ok" role="status">${outcomeText(said)}</div>`
    : html`<div class="note warn" role="status">${outcomeText(said)}</div>`
}

function bodyOf({ to }: Visit, { inboxId }: InspectedPush, body: Uint8Array, isIndented: boolean): Markup {
  const bytes = Buffer.from(body)
  const text = bytes.toString()
  const indented = isUtf8(bytes) ? indentJson(text) : null
  const here = to`/inbox/${inboxId}`
  const shown = isIndented && indented !== null ? indented : text.slice(0, SHOWN_MAX)
  const other = isIndented ? link(here, 'As received') : link(withQuery(here, { as: 'indented' }), 'Indented')
  return html`<pre tabindex="0">${receivedText(shown)}</pre>
<p class="more">${indented === null ? null : other}${link(to`/inbox/${inboxId}/body`, 'Download the exact bytes')}</p>
${isUtf8(bytes) ? null : html`<p class="dim">It is not UTF-8: what is no text is shown as <code>�</code>.</p>`}${text.length > SHOWN_MAX ? html`<p class="dim">Only its first ${countText(SHOWN_MAX)} characters are shown.</p>` : null}`
}
