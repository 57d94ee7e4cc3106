import { OPERATOR_NAME } from '../../domain/delivery/operator-event.ts'
import { listOf, memberOf, textOf } from '../asking/ask-relay.ts'
import { describeAnswer, explainAttempt } from '../endpoints/present-endpoint.ts'
import { age } from '../terminal/ages.ts'
import { type Cell, plain, shownBody, type Tone, table } from '../terminal/table.ts'

const TONES: ReadonlyMap<string, Tone> = new Map([
  ['delivered', 'good'],
  ['retrying', 'warn'],
  ['held', 'warn'],
  ['dead', 'bad'],
  ['cancelled', 'dim'],
])

export function presentDeliveries(deliveries: readonly unknown[]): string {
  if (deliveries.length === 0) return 'No delivery matches.\n'
  return table(
    ['id', 'endpoint', 'parcel', 'status', 'state', 'attempts', 'last answer', 'queued'],
    deliveries.map((delivery) => [...rowOf(delivery), `${age(textOf(delivery, 'queuedAt'))} ago`]),
  )
}

/** Returns the cells of a table row: what the delivery is about, and its state. */
function rowOf(delivery: unknown): readonly Cell[] {
  const last = memberOf(delivery, 'lastAttempt')
  return [
    textOf(delivery, 'id') ?? '',
    textOf(memberOf(delivery, 'endpoint'), 'name') ?? '',
    parcelOf(delivery),
    textOf(delivery, 'status') ?? '',
    stateCell(delivery),
    String(Number(memberOf(delivery, 'attemptCount'))),
    typeof last === 'object' && last !== null ? describeAnswer(last) : '',
  ]
}

/** Presents a delivery in one line, for `tail deliveries`. */
export function deliveryLine(delivery: unknown): string {
  const [id, endpoint, parcel, status, , attempts, answer] = rowOf(delivery).map((cell) => (typeof cell === 'string' ? cell : cell.text))
  const state = stateText(delivery)
  const tried = attempts === '0' ? '' : `  attempt ${attempts}${answer === '' ? '' : `: ${answer}`}`
  return plain(`${id}  ${endpoint}  ${parcel}  ${status}  ${state}${tried}`)
}

function parcelOf(delivery: unknown): string {
  const [first] = listOf(memberOf(delivery, 'parcel'), 'identifiers')
  return typeof first === 'string' ? first : ''
}

function stateText(delivery: unknown): string {
  const reason = textOf(delivery, 'reason')
  return `${textOf(delivery, 'state') ?? ''}${reason === null ? '' : ` (${reason.replaceAll('_', ' ')})`}`
}

function stateCell(delivery: unknown): Cell {
  const tone = TONES.get(textOf(delivery, 'state') ?? '')
  return tone === undefined ? stateText(delivery) : { text: stateText(delivery), tone }
}

export function presentDelivery(delivery: unknown): string {
  const request = memberOf(delivery, 'request')
  const next = textOf(delivery, 'nextAttemptAt')
  const lines: readonly (readonly [name: string, value: string | null])[] = [
    ['id', textOf(delivery, 'id')],
    ['event', textOf(delivery, 'webhookId')],
    ['endpoint', textOf(memberOf(delivery, 'endpoint'), 'name')],
    ['parcel', listOf(memberOf(delivery, 'parcel'), 'identifiers').join(', ')],
    ['state', stateText(delivery)],
    ['queued', textOf(delivery, 'queuedAt')],
    ['next attempt', next],
    ['ended', textOf(delivery, 'settledAt')],
  ]
  const facts = lines.flatMap(([name, value]) => (value === null || value === '' ? [] : [`${name.padEnd(14)}${plain(value)}`]))
  const headers = Object.entries(memberOf(request, 'headers') ?? {}).map(([name, value]) => plain(`${name}: ${String(value)}`))
  const body = textOf(request, 'body')
  const sent = [
    `POST ${plain(textOf(request, 'url') ?? '')}`,
    ...headers,
    '',
    body === null ? 'The body is no longer kept.' : shownBody(body),
  ]
  const attempts = listOf(delivery, 'attempts')
  return `${[...facts, '', ...sent].join('\n')}\n\n${attempts.length === 0 ? 'It has not been attempted yet.\n' : `${presentAttempts(attempts)}${remedyOf(attempts[0], delivery)}`}`
}

/** Explains why the last attempt failed. Empty: it did not. */
function remedyOf(last: unknown, delivery: unknown): string {
  const status = memberOf(last, 'status')
  if (typeof status === 'number' && status >= 200 && status <= 299) return ''
  const url = textOf(memberOf(delivery, 'request'), 'url') ?? ''
  const endpoint = memberOf(delivery, 'endpoint')
  const isOperator = textOf(endpoint, 'name') === OPERATOR_NAME
  const { what, todo } = explainAttempt(last, { url, extent: 'one', endpoint: isOperator ? null : endpoint })
  return `\n${plain(what)} ${plain(todo)}\n`
}

function presentAttempts(attempts: readonly unknown[]): string {
  return table(
    ['attempted at', 'took', 'answer'],
    attempts.map((attempt) => [
      textOf(attempt, 'at') ?? '',
      `${Math.round(Number(memberOf(attempt, 'durationMs')))} ms`,
      describeAnswer(attempt),
    ]),
  )
}
