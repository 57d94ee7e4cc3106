import { Command } from 'commander'
import type { DeliveryAnswer } from '../../../core/http/delivery/deliveries.routes.ts'
import type { EndpointAnswer } from '../../../core/http/delivery/endpoints.routes.ts'
import {
  type AskRelay,
  addRelayOptions,
  asking,
  type ClientOptions,
  describeDeliveryProblem,
  openRelay,
  order,
  print,
} from '../asking/ask-relay.ts'
import { findEndpoint } from '../endpoints/find-endpoint.ts'
import { dueNow } from '../endpoints/present-endpoint.ts'
import { fail, failUsage } from '../exit-codes.ts'

interface RetryOptions extends ClientOptions {
  readonly endpoint?: string
}

/** `retry`, and `deliveries retry`. */
export function retryCommand(): Command {
  const command = new Command('retry')
    .description('attempt waiting deliveries now: those named, or everything that waits for an endpoint')
    .argument('[ids...]', 'deliveries')
    .option('--endpoint <endpoint>', 'everything that waits for this endpoint, by its name or id')
    .action(async (ids: readonly string[], options: RetryOptions) => {
      if ((ids.length === 0) === (options.endpoint === undefined))
        return failUsage('retry: name deliveries by id, or an endpoint with --endpoint')
      const ask = await openRelay(options)
      if (options.endpoint === undefined) await orderEach(ask, ids, 'retry', options)
      else await retryEndpoint(ask, options.endpoint, options)
    })
  return addRelayOptions(command)
}

export function skipCommand(): Command {
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
