import { OPERATOR_NAME } from '../../../core/domain/delivery/operator-event.ts'
import type { DeliveryAnswer, InspectedDeliveryAnswer } from '../../../core/http/delivery/deliveries.routes.ts'
import { describeAnswer, explainAttempt } from '../endpoints/present-endpoint.ts'
import { age, type Cell, plain, shownBody, type Tone, table } from '../terminal/table.ts'

const TONES: Readonly<Partial<Record<DeliveryAnswer['state'], Tone>>> = {
  delivered: 'good',
  retrying: 'warn',
  held: 'warn',
  dead: 'bad',
  cancelled: 'dim',
}

export function presentDeliveries(deliveries: readonly DeliveryAnswer[]): string {
  if (deliveries.length === 0) return 'No delivery matches.\n'
  return table(
    ['id', 'endpoint', 'parcel', 'status', 'state', 'attempts', 'last answer', 'queued'],
    deliveries.map((delivery) => [...rowOf(delivery), `${age(delivery.queuedAt)} ago`]),
  )
}

/** Returns the cells of a table row: what the delivery is about, and its state. */
function rowOf(delivery: DeliveryAnswer): readonly Cell[] {
  const { id, endpoint, parcel, status, state, attemptCount, lastAttempt } = delivery
  const text = stateText(delivery)
  const tone = TONES[state]
  return [
    id,
    endpoint.name,
    parcel.identifiers[0] ?? '',
    status ?? '',
    tone === undefined ? text : { text, tone },
    String(attemptCount),
    lastAttempt === null ? '' : describeAnswer(lastAttempt),
  ]
}

/** Presents a delivery in one line, for `tail deliveries`. */
export function deliveryLine(delivery: DeliveryAnswer): string {
  const [id, endpoint, parcel, status, , attempts, answer] = rowOf(delivery).map((cell) => (typeof cell === 'string' ? cell : cell.text))
  const tried = attempts === '0' ? '' : `  attempt ${attempts}${answer === '' ? '' : `: ${answer}`}`
  return plain(`${id}  ${endpoint}  ${parcel}  ${status}  ${stateText(delivery)}${tried}`)
}

function stateText({ state, reason }: DeliveryAnswer): string {
  return `${state}${reason === null ? '' : ` (${reason.replaceAll('_', ' ')})`}`
}

export function presentDelivery(delivery: InspectedDeliveryAnswer): string {
  const { id, webhookId, endpoint, parcel, queuedAt, nextAttemptAt, settledAt, request, attempts } = delivery
  const lines: readonly (readonly [name: string, value: string | null])[] = [
    ['id', id],
    ['event', webhookId],
    ['endpoint', endpoint.name],
    ['parcel', parcel.identifiers.join(', ')],
    ['state', stateText(delivery)],
    ['queued', queuedAt],
    ['next attempt', nextAttemptAt],
    ['ended', settledAt],
  ]
  const facts = lines.flatMap(([name, value]) => (value === null || value === '' ? [] : [`${name.padEnd(14)}${plain(value)}`]))
  const headers = Object.entries(request.headers).map(([name, value]) => plain(`${name}: ${value}`))
  const body = request.body === null ? 'The body is no longer kept.' : shownBody(request.body)
  const sent = [`POST ${plain(request.url)}`, ...headers, '', body]
  const [last] = attempts
  return `${[...facts, '', ...sent].join('\n')}\n\n${last === undefined ? 'It has not been attempted yet.\n' : `${presentAttempts(attempts)}${remedyOf(last, delivery)}`}`
}

type Attempts = InspectedDeliveryAnswer['attempts']

/** Explains why the last attempt failed. Empty: it did not. */
function remedyOf(last: Attempts[number], { request, endpoint }: InspectedDeliveryAnswer): string {
  if (last.status !== null && last.status >= 200 && last.status <= 299) return ''
  const isOperator = endpoint.name === OPERATOR_NAME
  const { what, todo } = explainAttempt(last, { url: request.url, extent: 'one', endpoint: isOperator ? null : endpoint })
  return `\n${plain(what)} ${plain(todo)}\n`
}

function presentAttempts(attempts: Attempts): string {
  return table(
    ['attempted at', 'took', 'answer'],
    attempts.map((attempt) => [attempt.at, `${Math.round(attempt.durationMs)} ms`, describeAnswer(attempt)]),
  )
}
