import { Command, Option } from 'commander'
import { DELIVERY_STATES } from '../../core/flow/delivery/manage-deliveries.ts'
import type { DeliveryAnswer, InspectedDeliveryAnswer } from '../../core/http/delivery/deliveries.routes.ts'
import { addRelayOptions, asking, type ClientOptions, describeDeliveryProblem, openRelay, print } from './asking/ask-relay.ts'
import { addLimitOption, type LimitOptions, printList } from './asking/paged-list.ts'
import { presentDeliveries, presentDelivery } from './deliveries/present-delivery.ts'
import { replayCommand } from './deliveries/replay.ts'
import { retryCommand, skipCommand } from './deliveries/retry.ts'
import { findEndpoint } from './endpoints/find-endpoint.ts'
import { fail } from './exit-codes.ts'
import { readTimeOption } from './terminal/table.ts'

/** `deliveries`: lists, shows, retries, skips and replays deliveries of a running relay. */
export function deliveriesCommand(): Command {
  return new Command('deliveries')
    .description('list deliveries to endpoints, sent or waiting; show, retry, skip or replay them')
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(showCommand())
    .addCommand(retryCommand())
    .addCommand(skipCommand())
    .addCommand(replayCommand())
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
