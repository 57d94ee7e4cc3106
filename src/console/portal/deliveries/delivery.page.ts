import { counted, countText } from '../../../core/domain/amounts.ts'
import type { AttemptRecord } from '../../../core/domain/delivery/delivery-list.ts'
import { AppError, type ErrorCode } from '../../../core/domain/errors.ts'
import { receivedText } from '../../../core/domain/text.ts'
import {
  DELIVERY_STATES,
  readDeliveryCursor,
  type ShownDelivery,
  type ShownRequest,
} from '../../../core/flow/delivery/manage-deliveries.ts'
import type { UseCases } from '../../../core/http/use-cases.ts'
import { html, link, type Markup, type Part, SHOWN_MAX } from '../html.ts'
import { getPage, type PageAnswer, type PageRoute, postForm, renderPage, type Visit } from '../layout.ts'
import { actionButton, asOfLine, breakable, crumbs, facts, headline, stateMark, table } from '../parts.ts'
import { fullTime, namesOfWebhooks, options, readTimes, relativeTime, timeInTable, type WebhookName } from '../times.ts'
import { failureNote } from '../webhooks/failure-words.ts'
import {
  answerName,
  type DeliveryFilters,
  deliveryListPage,
  deliveryMark,
  eventName,
  isBehind,
  isOperatorEvent,
  tookText,
  wordOf,
} from './delivery-list.page.ts'

const LIST_MAX = 100
/** The page shows these errors next to its form. Other errors get an error page. */
const MISTAKES: readonly ErrorCode[] = ['bad_request', 'bad_tracking_number', 'not_found']
type Parts = Pick<UseCases, 'manageDeliveries' | 'manageEndpoints'>

export function deliveryPages({ manageDeliveries, manageEndpoints }: Parts): readonly PageRoute[] {
  return [
    getPage('/deliveries', list),
    getPage('/deliveries/:id', show),
    postForm('/deliveries/:id/replay', replay),
    postForm(
      '/deliveries/:id/retry',
      after((id, by) => manageDeliveries.retry(id, by)),
    ),
    postForm(
      '/deliveries/:id/skip',
      after((id, by) => manageDeliveries.skip(id, by)),
    ),
  ]

  async function list(visit: Visit): Promise<PageAnswer> {
    const { query } = visit
    const filters = {
      endpoint: query('endpoint'),
      parcel: query('parcel').trim(),
      state: query('state'),
      from: query('from'),
      to: query('to'),
    }
    const cursor = query('cursor') === '' ? null : readDeliveryCursor(query('cursor'))
    if (cursor === null && query('cursor') !== '') throw new AppError('not_found', 'The list has no such page.')
    const webhooks = await namesOfWebhooks(manageEndpoints)
    const found = await orMistake(() => manageDeliveries.list({ ...readFilters(filters), cursor, limit: LIST_MAX }))
    if (typeof found !== 'string') return { page: deliveryListPage(visit, { filters, webhooks, ...found, mistake: null }) }
    return { page: deliveryListPage(visit, { filters, webhooks, deliveries: [], next: null, mistake: found }), status: 400 }
  }

  async function show(visit: Visit): Promise<PageAnswer> {
    const found = await manageDeliveries.find(visit.param('id'))
    return { page: deliveryPage(visit, { ...found, webhooks: await namesOfWebhooks(manageEndpoints) }) }
  }

  async function replay({ param, form, to, by }: Visit): Promise<PageAnswer> {
    const { delivery } = await manageDeliveries.find(param('id'))
    // Somebody may press the button twice. The second form must not queue the delivery again.
    if (form.get('queued') !== String(delivery.queuedAtMs))
      throw new AppError(
        'stale_form',
        'This delivery was queued again after the page was loaded, so nothing was done. Reload the page first.',
      )
    const other = form.get('to')
    await manageDeliveries.replay(param('id'), other === '' ? null : { to: other }, by)
    return { goTo: to`/deliveries/${param('id')}` }
  }

  function after(act: (id: string, by: Visit['by']) => Promise<unknown>): PageRoute['answer'] {
    return async ({ param, to, by }) => {
      await act(param('id'), by)
      return { goTo: to`/deliveries/${param('id')}` }
    }
  }
}

function readFilters({ endpoint, parcel, state, from, to }: DeliveryFilters) {
  if (!/^\d{0,15}$/.test(endpoint)) throw new AppError('bad_request', 'There is no such webhook.')
  return {
    endpoint: endpoint === '' ? null : Number(endpoint),
    parcel: parcel === '' ? null : parcel,
    state: DELIVERY_STATES.find((one) => one === state) ?? null,
    ...readTimes({ from, to }),
  }
}

/** Returns the result of the work, or a sentence that says why the request was wrong. */
async function orMistake<Found extends object>(work: () => Promise<Found>): Promise<Found | string> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof AppError && MISTAKES.includes(error.code)) return error.message
    throw error
  }
}

export interface OneDelivery {
  readonly delivery: ShownDelivery
  readonly attempts: readonly AttemptRecord[]
  readonly request: ShownRequest
  readonly webhooks: readonly WebhookName[]
}

/** Makes the page of one delivery: its request, the answers, and the actions that are possible. */
function deliveryPage(visit: Visit, { delivery, attempts, request, webhooks }: OneDelivery): string {
  const { to, nowMs } = visit
  const { deliveryId, endpointId, endpointName } = delivery
  const title = isOperatorEvent(delivery) ? eventName(delivery) : `${eventName(delivery)} to ${endpointName}`
  const isRemoved = !webhooks.some(({ id }) => id === endpointId)
  const main = html`${crumbs([to`/deliveries`, 'Deliveries'])}
${headline({
  title,
  state: deliveryMark(delivery, delivery.attempts === 0 ? null : `after ${counted(delivery.attempts, 'attempt', 'attempts')}`),
  lead: leadOf(delivery, nowMs),
  actions: actionsOf(visit, delivery, isRemoved),
  asOf: asOfLine(nowMs, to`/deliveries/${deliveryId}`),
})}
${facts(factsOf(visit, delivery, isRemoved))}
${sendElsewhere(visit, delivery, webhooks)}
${skipForm(visit, delivery, title)}
<div class="cols"><section aria-labelledby="back"><h2 id="back">What came back</h2>
${lastAnswerOf(attempts, nowMs)}
${failureOf(visit, delivery, { attempts, url: request.url, webhooks })}</section>
<section aria-labelledby="sent"><h2 id="sent">What is sent</h2>
<p><code>POST ${breakable(request.url)}</code></p>
<pre tabindex="0">${Object.entries(request.headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')}
x-service-hmac-sha256: (computed for each attempt)</pre></section></div>
<h2>Body</h2>
${bodyOf(request.body)}
<h2>Attempts</h2>
${attempts.length === 0 ? html`<p>None yet.</p>` : attemptsOf(attempts, nowMs)}`
  return renderPage(visit, 'deliveries', `${wordOf(delivery)}: ${title} · Deliveries`, main)
}

const ENDED_BECAUSE: Readonly<Record<NonNullable<ShownDelivery['reason']>, string>> = {
  receiver_refused: 'The webhook answered, but never with 2xx.',
  unreachable: 'The webhook could not be reached, or did not answer.',
  forbidden: 'The webhook’s address is one that the relay may not call: see delivery.allowNetworks.',
  body_gone: 'The bytes of its event are no longer kept, so there is nothing to send: see retention.raw.',
  skipped: 'Somebody skipped it.',
  held_too_long: 'It waited longer than retention.held, so the relay gave it up.',
  endpoint_removed: 'The webhook was removed before the event was sent.',
}

function leadOf(delivery: ShownDelivery, nowMs: number): Part {
  const { state, reason, nextAttemptAtMs, endpointName } = delivery
  if (state === 'delivered') return `${isOperatorEvent(delivery) ? 'The address in operator.url' : endpointName} accepted it.`
  if (state === 'dead' || state === 'cancelled') return reason === null ? 'It is not sent any more.' : ENDED_BECAUSE[reason]
  if (reason === 'skipped') return 'Somebody skipped it. It ends when the running attempt ends.'
  if (state === 'held') return 'It waits because the webhook is disabled. It is sent once the webhook is enabled again.'
  if (nextAttemptAtMs === null) return 'It waits for an earlier event of its parcel, which goes first.'
  const next = html`The next attempt is due ${relativeTime(nextAttemptAtMs, nowMs)}.`
  return state === 'retrying' ? html`It was not accepted yet. ${next}` : next
}

function isWaiting({ state }: ShownDelivery): boolean {
  return state === 'queued' || state === 'retrying' || state === 'held'
}

/** Makes the buttons. Each form sends the time when the delivery was queued. If it was queued again since then, a replay is refused. */
function actionsOf({ to }: Visit, delivery: ShownDelivery, isRemoved: boolean): Markup | null {
  const { deliveryId, state } = delivery
  const seen = { queued: String(delivery.queuedAtMs) }
  if (!isWaiting(delivery)) return isRemoved ? null : actionButton(to`/deliveries/${deliveryId}/replay`, 'Send again', 'main', seen)
  return state === 'held' || isBehind(delivery) ? null : actionButton(to`/deliveries/${deliveryId}/retry`, 'Send now', 'main')
}

function sendElsewhere({ to }: Visit, delivery: ShownDelivery, webhooks: readonly WebhookName[]): Markup | null {
  const others = webhooks.filter(({ id }) => id !== delivery.endpointId)
  if (isWaiting(delivery) || isOperatorEvent(delivery) || others.length === 0) return null
  return html`<details class="plain"><summary>Send to another webhook</summary>
<form method="post" action="${to`/deliveries/${delivery.deliveryId}/replay`.path}"><input type="hidden" name="queued" value="${delivery.queuedAtMs}">
<p>It is sent under the same id, in order with the parcel’s other events for that webhook.</p>
<div class="filters"><div><label for="to">Webhook</label><select id="to" name="to">${options(
    others.map(({ id, name }) => [id, name] as const),
    '',
  )}</select></div><div><button class="btn" type="submit">Send to it</button></div></div></form></details>`
}

function skipForm({ to }: Visit, delivery: ShownDelivery, title: string): Markup | null {
  if (!isWaiting(delivery) || delivery.reason === 'skipped') return null
  return html`<details class="plain"><summary>Skip it</summary><p>The relay gives it up and sends the next event of its parcel. It stays listed, and can be sent again.</p>
${actionButton(to`/deliveries/${delivery.deliveryId}/skip`, `Skip ${title}`, 'danger')}</details>`
}

function factsOf({ to, nowMs }: Visit, delivery: ShownDelivery, isRemoved: boolean): readonly (readonly [string, Part])[] {
  const { endpointId, endpointName, identifiers, sequence, previousSequence, nextAttemptAtMs, settledAtMs, event } = delivery
  const word = wordOf(delivery)
  const isOperator = isOperatorEvent(delivery)
  return [
    ...(isOperator
      ? []
      : [
          ['Parcel', identifiers.slice(0, 3).map((value) => html`<span class="id">${link(to`/parcels/${value}`, value)}</span> `)] as const,
        ]),
    isOperator
      ? ['Sent to', 'the address in operator.url']
      : ['Webhook', isRemoved ? `${endpointName}, removed` : link(to`/webhooks/${endpointId}`, endpointName)],
    ...(event === null ? [] : [['Event', breakable(event.detailedStatus)] as const]),
    ['Queued', fullTime(delivery.queuedAtMs, nowMs)],
    ...(nextAttemptAtMs === null ? [] : [['Next attempt', fullTime(nextAttemptAtMs, nowMs)] as const]),
    ...(settledAtMs === null ? [] : [[`${word.charAt(0).toUpperCase()}${word.slice(1)}`, fullTime(settledAtMs, nowMs)] as const]),
    ...(isOperator
      ? []
      : [
          [
            'Place in the feed',
            html`${countText(sequence)}<small>${previousSequence === 0 ? 'the first of this parcel for this webhook' : `after ${countText(previousSequence)} of this parcel`}</small>`,
          ] as const,
        ]),
  ]
}

function lastAnswerOf(attempts: readonly AttemptRecord[], nowMs: number): Markup {
  const [last] = attempts
  if (last === undefined) return html`<p>Nothing yet: no attempt was made.</p>`
  return html`<p>${stateMark(isAccepted(last) ? 'ok' : 'bad', answerName(last))} after ${tookText(last)}${last.address === null ? null : html`, at <span class="id">${last.address}</span>`}, ${fullTime(last.atMs, nowMs)}</p>
${
  last.answerStart.length === 0
    ? html`<p class="dim">${last.status === null ? 'There was no answer.' : 'The answer had no body.'}</p>`
    : html`<pre tabindex="0">${receivedText(last.answerStart)}</pre>
<p class="dim">Only the first 1,024 bytes of an answer are kept.</p>`
}`
}

/** Explains why the last attempt failed, and says what to do. Null: there was none, or it was accepted. */
function failureOf(
  visit: Visit,
  delivery: ShownDelivery,
  { attempts: [last], url, webhooks }: Pick<OneDelivery, 'attempts' | 'webhooks'> & { readonly url: string },
): Markup | null {
  if (last === undefined || isAccepted(last)) return null
  const { id, origin = null } = webhooks.find((one) => one.id === delivery.endpointId) ?? { id: delivery.endpointId }
  const webhook = isOperatorEvent(delivery) ? { id, origin: 'operator' as const } : origin === null ? null : { id, origin }
  // The answer stands above, so the explanation does not quote it again.
  return html`<div class="note bad">${failureNote(visit, [{ ...last, answerStart: new Uint8Array() }, url, 'one'], webhook)}</div>`
}

function isAccepted({ status }: AttemptRecord): boolean {
  return status !== null && status >= 200 && status < 300
}

function bodyOf(body: string | null): Markup {
  if (body === null) return html`<p>It is no longer kept (retention.raw).</p>`
  const isCut = body.length > SHOWN_MAX
  return html`<pre tabindex="0">${receivedText(body.slice(0, SHOWN_MAX))}</pre>${isCut ? html`<p class="dim">Only its first ${countText(SHOWN_MAX)} characters are shown.</p>` : null}`
}

function attemptsOf(attempts: readonly AttemptRecord[], nowMs: number): Markup {
  return table({
    label: 'Attempts, newest first',
    kind: 'cards tight',
    columns: [{ time: 'When' }, { number: 'Took' }, 'Address', 'Answer'],
    rows: attempts.map((attempt, at) => [
      timeInTable(attempt.atMs, nowMs),
      tookText(attempt),
      attempt.address ?? 'no connection',
      answerOf(attempt, attempts[at - 1]),
    ]),
  })
}

/** Shows an answer. If the next attempt, in the row above, got the same answer, the text is not repeated. */
function answerOf(attempt: AttemptRecord, later: AttemptRecord | undefined): Part {
  if (attempt.answerStart.length === 0) return answerName(attempt)
  const isSame = later !== undefined && Buffer.compare(later.answerStart, attempt.answerStart) === 0
  if (isSame) return html`${answerName(attempt)} <span class="dim">the same</span>`
  return html`${answerName(attempt)}<span class="answer">${receivedText(attempt.answerStart)}</span>`
}
