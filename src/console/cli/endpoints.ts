import { Command } from 'commander'
import type { InspectedEndpointAnswer } from '../../core/http/delivery/endpoints.routes.ts'
import { asking, type ClientOptions, order, print } from './asking/ask-relay.ts'
import { removeCommand, retryCommand, rotateCommand, switchCommand, testCommand } from './endpoints/change.ts'
import { everyEndpoint, findEndpoint } from './endpoints/find-endpoint.ts'
import { presentEndpoint, presentEndpoints } from './endpoints/present-endpoint.ts'
import { addCommand, setCommand } from './endpoints/set.ts'

/** `endpoints`: lists and manages the endpoints of a running relay. */
export function endpointsCommand(): Command {
  return new Command('endpoints')
    .description('list the endpoints that events are pushed to, and manage them')
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(showCommand())
    .addCommand(addCommand())
    .addCommand(setCommand())
    .addCommand(switchCommand('enable'))
    .addCommand(switchCommand('disable'))
    .addCommand(retryCommand())
    .addCommand(rotateCommand())
    .addCommand(testCommand())
    .addCommand(removeCommand())
}

function listCommand(): Command {
  const command = new Command('list').description(
    'list them: state, what waits, since when, and the last error (this is what `endpoints` alone does)',
  )
  return asking(command, async (ask, options: ClientOptions) => {
    const endpoints = await everyEndpoint(ask)
    print(options, { endpoints }, presentEndpoints(endpoints))
  })
}

function showCommand(): Command {
  const command = new Command('show')
    .description('show one with its settings and its failures of the last 30 days')
    .argument('<endpoint>', 'its name or id')
  return asking(command, async (ask, nameOrId: string, options: ClientOptions) => {
    const { id } = await findEndpoint(ask, nameOrId)
    const endpoint = await order<InspectedEndpointAnswer>(ask, 'GET', `/relay/endpoints/${id}`)
    print(options, endpoint, presentEndpoint(endpoint))
  })
}
