import { Command } from 'commander'
import { addRelayOptions, type ClientOptions, describeProblem, openRelay } from './asking/ask-relay.ts'
import { addCommand } from './endpoints/add.ts'
import { removeCommand, retryCommand, rotateCommand, switchCommand, testCommand } from './endpoints/change.ts'
import { everyEndpoint, findEndpoint } from './endpoints/find-endpoint.ts'
import { presentEndpoint, presentEndpoints } from './endpoints/present-endpoint.ts'
import { setCommand } from './endpoints/set.ts'
import { fail } from './exit-codes.ts'

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
  const command = new Command('list')
    .description('list them: state, what waits, since when, and the last error (this is what `endpoints` alone does)')
    .action(async (options: ClientOptions) => {
      const endpoints = await everyEndpoint(await openRelay(options))
      process.stdout.write(options.json === true ? `${JSON.stringify({ endpoints })}\n` : presentEndpoints(endpoints))
    })
  return addRelayOptions(command)
}

function showCommand(): Command {
  const command = new Command('show')
    .description('show one with its settings and its failures of the last 30 days')
    .argument('<endpoint>', 'its name or id')
    .action(async (nameOrId: string, options: ClientOptions) => {
      const ask = await openRelay(options)
      const { id } = await findEndpoint(ask, nameOrId)
      const answer = await ask('GET', `/relay/endpoints/${id}`)
      if (answer.status !== 200) return fail(describeProblem(answer))
      process.stdout.write(options.json === true ? `${JSON.stringify(answer.body)}\n` : presentEndpoint(answer.body))
    })
  return addRelayOptions(command)
}
