import { Command, Option } from 'commander'
import { OPERATOR_NAME } from '../../core/domain/delivery/operator-event.ts'
import { DELIVERY_STATES } from '../../core/flow/delivery/manage-deliveries.ts'
import type { DeliveryAnswer, InspectedDeliveryAnswer } from '../../core/http/delivery/deliveries.routes.ts'
import type { EndpointAnswer } from '../../core/http/delivery/endpoints.routes.ts'
import {
  type AskRelay,
  addRelayOptions,
  asking,
  type ClientOptions,
  describeDeliveryProblem,
  openRelay,
  order,
  print,
} from './asking/ask-relay.ts'
import { addLimitOption, findEndpoint, type LimitOptions, printList } from './asking/lists.ts'
import { fail, failUsage } from './exit-codes.ts'
import { describeAnswer, dueNow, explainAttempt } from './present-endpoint.ts'
import { age, type Cell, plain, readTimeOption, shownBody, type Tone, table } from './terminal.ts'

/** `deliveries`: lists, shows, retries and skips deliveries of a running relay. */
export function deliveriesCommand(): Command {
  return new Command('deliveries')
    .description('list deliveries to endpoints, sent or waiting; show, retry, skip or replay them')
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(showCommand())
    .addCommand(retryCommand())
    .addCommand(skipCommand())
}

interface ListOptions extends ClientOptions, LimitOptions {
  readonly endpoint?: string
  readonly parcel?: string
  readonly state?: string
  readonly from?: string
  readonly to?: string
}

function listCommand(): Command {
  const command = new Command('list')
    .description('list them, the newest first (this is what `deliveries` alone does)')
    .option('--endpoint <endpoint>', 'only those to this endpoint, by its name or id')
    .option('--parcel <identifier>', 'only those about this parcel')
    .addOption(new Option('--state <state>', 'only those in this state').choices(DELIVERY_STATES))
    .option('--from <time>', 'only those queued at this time or later: 2026-03-01T10:00:00Z, or 2h for two hours ago', readTimeOption)
    .option('--to <time>', 'only those queued before this time', readTimeOption)
    .action(async ({ endpoint, parcel, state, from, to, ...options }: ListOptions) => {
      const ask = await openRelay(options)
      const id = endpoint === undefined ? undefined : (await findEndpoint(ask, endpoint)).id
      const query = { endpoint: id, parcel, state, from, to }
      const asked = { path: '/relay/deliveries', name: 'deliveries', limit: options.limit, query }
      await printList<DeliveryAnswer>(ask, asked, options, presentDeliveries)
    })
  return addRelayOptions(addLimitOption(command))
}

function showCommand(): Command {
  const command = new Command('show')
    .description('show one: the request that is sent, and what the endpoint answered to each attempt')
    .argument('<id>')
  return asking(command, async (ask, id: string, options: ClientOptions) => {
    const answer = await ask<InspectedDeliveryAnswer>('GET', `/relay/deliveries/${encodeURIComponent(id)}`)
    if (!answer.ok) return fail(await describeDeliveryProblem(ask, id, answer, (name) => `deliveries --endpoint ${name}`))
    print(options, answer.body, presentDelivery(answer.body))
  })
}

/** `retry`, and `deliveries retry`. */
export function retryCommand(): Command {
  const command = new Command('retry')
    .description('attempt waiting deliveries now: those named, or everything that waits for an endpoint')
    .argument('[ids...]', 'deliveries')
    .option('--endpoint <endpoint>', 'everything that waits for this endpoint, by its name or id')
    .action(async (ids: readonly string[], options: ClientOptions & { readonly endpoint?: string }) => {
      if ((ids.length === 0) === (options.endpoint === undefined))
        return failUsage('retry: name deliveries by id, or an endpoint with --endpoint')
      const ask = await openRelay(options)
      if (options.endpoint === undefined) await orderEach(ask, ids, 'retry', options)
      else await retryEndpoint(ask, options.endpoint, options)
    })
  return addRelayOptions(command)
}

function skipCommand(): Command {
  const command = new Command('skip')
    .description('give waiting deliveries up, so that the next ones of their parcels are sent')
    .argument('<ids...>')
  return asking(command, async (ask, ids: readonly string[], options: ClientOptions) => await orderEach(ask, ids, 'skip', options))
}

async function orderEach(ask: AskRelay, ids: readonly string[], verb: 'retry' | 'skip', options: ClientOptions): Promise<void> {
  for (const id of ids) {
    const answer = await ask<DeliveryAnswer>('POST', `/relay/deliveries/${encodeURIComponent(id)}/${verb}`)
    if (answer.ok) print(options, answer.body, `${id}: ${verb === 'retry' ? 'due now' : 'given up'}, ${answer.body.endpoint.name}\n`)
    else fail(await describeDeliveryProblem(ask, id, answer, insteadOf(verb)))
  }
}

/** A user who gives the name of an endpoint instead of a delivery's id probably wants this command. */
function insteadOf(verb: 'retry' | 'skip'): (name: string) => string {
  return (name) => (verb === 'retry' ? `retry --endpoint ${name}` : `deliveries --endpoint ${name}`)
}

async function retryEndpoint(ask: AskRelay, nameOrId: string, options: ClientOptions): Promise<void> {
  const { id, name } = await findEndpoint(ask, nameOrId)
  const body = await order<EndpointAnswer>(ask, 'POST', `/relay/endpoints/${id}/retry`)
  print(options, body, `${name}: ${dueNow(body)}.\n`)
}

const TONES: Readonly<Partial<Record<DeliveryAnswer['state'], Tone>>> = {
  delivered: 'good',
  retrying: 'warn',
  held: 'warn',
  dead: 'bad',
  cancelled: 'dim',
}

function presentDeliveries(deliveries: readonly DeliveryAnswer[]): string {
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

function presentDelivery(delivery: InspectedDeliveryAnswer): string {
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
