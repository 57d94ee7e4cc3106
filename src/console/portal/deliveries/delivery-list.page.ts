import { counted, countText } from '../../../core/domain/amounts.ts'
import type { AttemptRecord } from '../../../core/domain/delivery/delivery-list.ts'
import { OPERATOR_NAME } from '../../../core/domain/delivery/operator-event.ts'
import { firstLine } from '../../../core/domain/text.ts'
import { DELIVERY_STATES, type ShownDelivery } from '../../../core/flow/delivery/manage-deliveries.ts'
import { buttonLink, html, link, type Markup, markup, type Part, withQuery } from '../html.ts'
import { renderPage, type Visit } from '../layout.ts'
import { asOfLine, headline, olderLink, type StateKind, stateMark, table } from '../parts.ts'
import { options, timeFields, timeInTable, type WebhookName } from '../times.ts'

/** The chosen filters, as text. */
export interface DeliveryFilters {
  readonly endpoint: string
  readonly parcel: string
  readonly state: string
  readonly from: string
  readonly to: string
}

export interface DeliveryListing {
  readonly filters: DeliveryFilters
  /** What is wrong with the filters, as a sentence. Null: nothing is wrong. */
  readonly mistake: string | null
  readonly deliveries: readonly ShownDelivery[]
  readonly next: string | null
  readonly webhooks: readonly WebhookName[]
}

export function deliveryListPage(visit: Visit, listing: DeliveryListing): string {
  const { to, nowMs } = visit
  const { filters, mistake, deliveries, next } = listing
  const main = html`${headline({
    title: 'Deliveries',
    lead: leadOf(listing),
    actions: html`${buttonLink(withQuery(to`/deliveries/replay`, { endpoint: filters.endpoint }), 'Replay deliveries')}${buttonLink(to`/jobs`, 'Jobs')}`,
    asOf: asOfLine(nowMs, withQuery(to`/deliveries`, { ...filters })),
  })}
${filterForm(visit, filters, withRemoved(listing.webhooks, deliveries, filters.endpoint))}
${mistake === null ? null : html`<div class="note bad" role="alert">${mistake} ${link(to`/deliveries`, 'Show all deliveries')}</div>`}
${deliveries.length > 0 ? rowsOf(visit, listing) : mistake === null && next === null ? nothing(visit, listing) : null}
${olderLink(to`/deliveries`, next, { ...filters })}`
  return renderPage(visit, 'deliveries', 'Deliveries', main)
}

function leadOf({ deliveries, next, mistake, filters }: DeliveryListing): string {
  if (mistake !== null) return 'Nothing is shown.'
  if (deliveries.length > 0) return `${counted(deliveries.length, 'delivery', 'deliveries')} on this page, the newest first.`
  if (next !== null) return 'None on this page; there may be older ones.'
  return isFiltered(filters) ? 'No delivery matches the filters.' : 'None yet.'
}

function isFiltered(filters: DeliveryFilters): boolean {
  return Object.values(filters).some((chosen) => chosen !== '')
}

function nothing({ to }: Visit, { filters, webhooks }: DeliveryListing): Markup {
  if (isFiltered(filters))
    return html`<div class="empty"><h2>Nothing found</h2><p>${link(to`/deliveries`, 'Show all deliveries')}</p></div>`
  if (webhooks.length > 0) {
    return html`<div class="empty"><h2>No event has come yet</h2><p>Each event becomes one delivery for each webhook that wants it.</p></div>`
  }
  return html`<div class="empty"><h2>There is nobody to deliver to</h2><p>Each event becomes one delivery for each webhook that wants it.</p><p>${buttonLink(to`/webhooks/new`, 'Add webhook', 'main')}</p></div>`
}

/** Returns the names of all webhooks, and of the removed webhooks to which one of these deliveries or a form refers. */
export function withRemoved(
  webhooks: readonly WebhookName[],
  deliveries: readonly ShownDelivery[],
  chosen: string,
): readonly WebhookName[] {
  const names = new Map<string, string>()
  if (/^\d{1,15}$/.test(chosen)) names.set(chosen, `webhook ${chosen}`)
  for (const { endpointId, endpointName } of deliveries) names.set(endpointId, endpointName)
  for (const { id } of webhooks) names.delete(id)
  return [...webhooks, ...[...names].map(([id, name]) => ({ id, name: name === OPERATOR_NAME ? name : `${name} (removed)` }))]
}

function filterForm({ to }: Visit, filters: DeliveryFilters, webhooks: readonly WebhookName[]): Markup {
  const ofWebhooks = webhooks.map(({ id, name }) => [id, name] as const)
  const states = DELIVERY_STATES.map((state) => [state, STATE_NAMES[state]] as const)
  return html`<form class="filters" role="search" action="${to`/deliveries`.path}" aria-label="Deliveries">
<div><label for="e">Webhook</label><select id="e" name="endpoint">${options([['', 'any'], ...ofWebhooks], filters.endpoint)}</select></div>
<div><label for="p">Parcel</label><input id="p" name="parcel" autocomplete="off" spellcheck="false" autocapitalize="characters" value="${filters.parcel}"></div>
<div><label for="s">State</label><select id="s" name="state">${options([['', 'any'], ...states], filters.state)}</select></div>
${timeFields(filters)}
<div><button class="btn" type="submit">Show</button></div>
</form>`
}

function rowsOf({ to, nowMs }: Visit, { deliveries, webhooks }: DeliveryListing): Markup {
  const present = new Set(webhooks.map(({ id }) => id))
  const webhookOf = (delivery: ShownDelivery): Part =>
    present.has(delivery.endpointId)
      ? link(to`/webhooks/${delivery.endpointId}`, delivery.endpointName)
      : html`${delivery.endpointName}${isOperatorEvent(delivery) ? null : html` <small class="keep">removed</small>`}`
  const parcelOf = ({ identifiers: [first] }: ShownDelivery): Part =>
    first === undefined ? null : link(to`/parcels/${first}`, first, markup(' class="id"'))
  return table({
    label: 'Deliveries, newest first',
    kind: 'cards tight lines',
    columns: ['Event', 'Parcel', 'Webhook', 'State', { time: 'Queued' }, { number: 'Attempts' }, 'Last answer'],
    rows: deliveries.map((delivery) => [
      link(to`/deliveries/${delivery.deliveryId}`, eventName(delivery)),
      parcelOf(delivery),
      webhookOf(delivery),
      deliveryMark(delivery),
      timeInTable(delivery.queuedAtMs, nowMs),
      countText(delivery.attempts),
      lastAnswer(delivery),
    ]),
  })
}

type State = ShownDelivery['state']

const MARKS: Readonly<Record<State, readonly [kind: StateKind, word: string]>> = {
  queued: ['wait', 'queued'],
  retrying: ['warn', 'retrying'],
  held: ['off', 'waits'],
  delivered: ['ok', 'delivered'],
  dead: ['bad', 'given up'],
  cancelled: ['off', 'cancelled'],
}

const STATE_NAMES: Readonly<Record<State, string>> = {
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
function lastAnswer(delivery: ShownDelivery): Part {
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
