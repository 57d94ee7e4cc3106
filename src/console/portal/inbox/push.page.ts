import { isUtf8 } from 'node:buffer'
import { counted, countText } from '../../../core/domain/amounts.ts'
import type { RecordOutcome } from '../../../core/domain/history/recording.ts'
import { type BodyFault, reasonSentence } from '../../../core/domain/ingest/fault-in-body.ts'
import type { InspectedPush } from '../../../core/domain/ingest/inbox.ts'
import { receivedText } from '../../../core/domain/text.ts'
import { link, withQuery } from '../addresses.ts'
import { html, type Markup, type Part } from '../html.ts'
import { indentJson, SHOWN_MAX } from '../indent-json.ts'
import { renderPage } from '../layout.ts'
import type { Visit } from '../page-route.ts'
import { actionButton, asOfLine, crumbs, facts, headline, settingsList } from '../parts.ts'
import { fullTime } from '../times.ts'
import { faultSentence, outcomeText, pushMark, STATE_NAMES } from './quarantine-words.ts'

/** The result of the button that somebody pressed on this page. Null: the page was only loaded. `refused`: the action was not possible. */
export type PushSaid = RecordOutcome | { readonly kind: 'refused'; readonly because: string } | null

export interface OnePush {
  readonly push: InspectedPush
  readonly isIndented: boolean
  readonly said: PushSaid
}

/** Makes the page of one push: what is wrong with it, its bytes as text, and how to reprocess it. */
export function pushPage(visit: Visit, { push, isIndented, said }: OnePush): string {
  const { to, nowMs, person } = visit
  const { inboxId, state, reason, body } = push
  const canReprocess = state !== 'recorded' && body !== null
  const canDismiss = state === 'quarantined'
  const main = html`${crumbs([to`/inbox`, 'Inbox'])}
${headline({
  title: `Push ${inboxId}`,
  state: pushMark(push),
  lead: leadOf(push),
  actions: html`${canReprocess ? actionButton(to`/inbox/${inboxId}/reprocess`, 'Reprocess', 'main') : null}${
    canDismiss ? actionButton(to`/inbox/${inboxId}/dismiss`, 'Dismiss') : null
  }`,
  asOf: asOfLine(nowMs, to`/inbox/${inboxId}`),
})}
${noteOf(said)}
${facts([
  ['Received', fullTime(push.receivedAtMs, nowMs)],
  ['Signed with', html`key ${push.keyIndex + 1} <small>of webhook.sharedKeys</small>`],
  ['Content-Encoding', push.contentEncoding ?? 'none'],
  ['Body', push.bodyBytes === null ? 'no longer kept' : counted(push.bodyBytes, 'byte', 'bytes')],
  ['Came again', push.duplicates === 0 ? 'no' : counted(push.duplicates, 'time', 'times')],
  ['Names the parcel', parcelOf(visit, push)],
  ['Status', push.status === null ? 'not told' : receivedText(push.status)],
])}
<h2>Body${body === null ? null : isIndented ? ', indented' : ', as received'}</h2>
${body === null ? html`<p>The body is no longer kept (retention.raw).</p>` : bodyOf(visit, push, body, isIndented)}
${canReprocess ? whatTheyDo(canDismiss) : null}`
  const title = reason === null ? `Push ${inboxId} · Inbox` : `Push ${inboxId}, ${STATE_NAMES[state]} · Inbox`
  return renderPage(visit, { title, section: 'inbox', person, main })
}

function whatTheyDo(canDismiss: boolean): Markup {
  return html`<h2>What the ${canDismiss ? 'two buttons do' : 'button does'}</h2>
${settingsList([
  [
    'Reprocess',
    'Reads it again with the version that runs now. If that version understands it, the relay records its entry and sends it to webhooks.',
  ],
  ...(canDismiss
    ? [
        [
          'Dismiss',
          'Gives the push up. No history changes, and no webhook gets it. It stays listed as long as its bytes are kept.',
        ] as const,
      ]
    : []),
])}`
}

function parcelOf({ to }: Visit, { state, identifiers: [identifier] }: InspectedPush): Part {
  if (identifier === undefined) return 'not told'
  return state === 'recorded' ? link(to`/parcels/${identifier}`, identifier) : html`<span class="id">${receivedText(identifier)}</span>`
}

function leadOf({ state, reason }: InspectedPush): string {
  if (state === 'recorded') return 'It was understood, and its event is part of its parcel’s history.'
  if (state === 'expired') return 'Its event is older than retention.history, so it was not recorded.'
  if (state === 'dismissed') return 'It was not understood, and somebody decided that nobody needs it.'
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

function bodyOf({ to }: Visit, { inboxId, fault }: InspectedPush, body: Uint8Array, isIndented: boolean): Markup {
  const bytes = Buffer.from(body)
  const text = bytes.toString()
  const indented = isUtf8(bytes) ? indentJson(text) : null
  const here = to`/inbox/${inboxId}`
  const shown = isIndented && indented !== null ? receivedText(indented) : markedText(bytes, fault)
  const other = isIndented ? link(here, 'As received') : link(withQuery(here, { as: 'indented' }), 'Indented')
  return html`<pre tabindex="0">${shown}</pre>
<p class="more">${fault === null ? null : html`<span>${faultSentence(fault)}</span>`}${indented === null ? null : other}${link(to`/inbox/${inboxId}/body`, 'Download the exact bytes')}</p>
${isUtf8(bytes) ? null : html`<p class="dim">It is not UTF-8. Bytes that are not text are shown as <code>�</code>.</p>`}${bytes.length > SHOWN_MAX ? html`<p class="dim">Only ${countText(SHOWN_MAX)} of its bytes are shown.</p>` : null}`
}

/** If the wrong bytes are far from the start of the body, this many bytes before them are shown. */
const BEFORE_FAULT_BYTES = 2000

/** Shows the body as text, with its wrong bytes marked. If the body is long, shows only the part around them. */
function markedText(bytes: Buffer, fault: BodyFault | null): Markup {
  if (fault === null) return html`${receivedText(bytes.subarray(0, SHOWN_MAX))}`
  const from = fault.to <= SHOWN_MAX ? 0 : Math.max(0, fault.from - BEFORE_FAULT_BYTES)
  const end = Math.min(from + SHOWN_MAX, bytes.length)
  const text = (start: number, stop: number) => receivedText(bytes.subarray(start, Math.min(stop, end)))
  return html`${from > 0 ? '…' : null}${text(from, fault.from)}<mark>${text(fault.from, fault.to)}</mark>${text(fault.to, end)}`
}
