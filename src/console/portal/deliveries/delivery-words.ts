import { countText } from '../../../core/domain/amounts.ts'
import type { AttemptRecord } from '../../../core/domain/delivery/delivery-list.ts'
import { OPERATOR_NAME } from '../../../core/domain/delivery/operator-event.ts'
import { firstLine } from '../../../core/domain/text.ts'
import type { ShownDelivery } from '../../../core/flow/delivery/manage-deliveries.ts'
import { html, type Markup, type Part } from '../html.ts'
import { type StateKind, stateMark } from '../parts.ts'

type State = ShownDelivery['state']

const MARKS: Readonly<Record<State, readonly [kind: StateKind, word: string]>> = {
  queued: ['wait', 'queued'],
  retrying: ['warn', 'retrying'],
  held: ['off', 'waits'],
  delivered: ['ok', 'delivered'],
  dead: ['bad', 'given up'],
  cancelled: ['off', 'cancelled'],
}

export const STATE_NAMES: Readonly<Record<State, string>> = {
  queued: 'queued',
  retrying: 'retrying',
  held: 'waits: webhook disabled',
  delivered: 'delivered',
  dead: 'given up',
  cancelled: 'cancelled',
}

export function deliveryMark({ state }: ShownDelivery, extra: Part = null): Markup {
  const [kind, word] = MARKS[state]
  return stateMark(kind, word, extra)
}

export function wordOf({ state }: ShownDelivery): string {
  return MARKS[state][1]
}

/** Names the event by its status. If its bytes are no longer kept, names it by its number in the feed. */
export function eventName(delivery: ShownDelivery): string {
  if (isOperatorEvent(delivery)) return 'Operator event'
  return delivery.event?.status ?? `Event ${countText(delivery.sequence)}`
}

/** Whether the delivery carries an event for operators, which belongs to no parcel and no webhook. */
export function isOperatorEvent({ endpointName }: ShownDelivery): boolean {
  return endpointName === OPERATOR_NAME
}

/** Whether the delivery waits until an earlier event of its parcel is accepted or given up. */
export function isBehind({ state, nextAttemptAtMs }: ShownDelivery): boolean {
  return (state === 'queued' || state === 'retrying') && nextAttemptAtMs === null
}

/** Returns the answer to the last attempt. If there was no attempt, says why. */
export function lastAnswer(delivery: ShownDelivery): Part {
  if (delivery.lastAttempt !== null) return answerInRow(delivery.lastAttempt)
  if (delivery.state === 'held') return html`none <small>the webhook is disabled</small>`
  if (isBehind(delivery)) return html`none <small>an earlier event of its parcel goes first</small>`
  return 'none'
}

function answerInRow(attempt: AttemptRecord): Markup {
  const start = firstLine(attempt.answerStart)
  return html`${answerName(attempt)} <small>${start === '' ? tookText(attempt) : start}</small>`
}

/** Returns the HTTP status of an answer or, if no answer came, the reason. */
export function answerName({ status, reason }: AttemptRecord): string {
  return status === null ? (reason ?? 'no answer').replaceAll('_', ' ') : String(status)
}

export function tookText({ durationMs }: AttemptRecord): string {
  return `${countText(Math.round(durationMs))} ms`
}
