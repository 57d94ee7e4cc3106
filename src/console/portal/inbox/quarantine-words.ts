import { counted, countText } from '../../../core/domain/amounts.ts'
import type { RecordOutcome } from '../../../core/domain/history/recording.ts'
import { type BodyFault, reasonSentence } from '../../../core/domain/ingest/fault-in-body.ts'
import type { InboxPush } from '../../../core/domain/ingest/inbox.ts'
import { receivedText } from '../../../core/domain/text.ts'
import { html, type Markup } from '../html.ts'
import { type StateKind, stateMark } from '../parts.ts'

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
