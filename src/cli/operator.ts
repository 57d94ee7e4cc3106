import { Command } from 'commander'
import { addRelayOptions, type ClientOptions, describeProblem, memberOf, openRelay, textOf } from './asking/ask-relay.ts'
import { explainAttempt } from './endpoints/present-endpoint.ts'
import { fail } from './exit-codes.ts'

/** `operator`: commands about the address to which the relay posts operator events. */
export function operatorCommand(): Command {
  return new Command('operator')
    .description('the address that operator events are posted to')
    .addCommand(testCommand())
    .addCommand(enableCommand())
}

function enableCommand(): Command {
  const command = new Command('enable')
    .description('enable operator.url after its answers have disabled it; events that wait are sent')
    .action(async (options: ClientOptions) => {
      const ask = await openRelay(options)
      const { status, body } = await ask('POST', '/relay/operator/enable')
      if (status !== 204) return fail(describeProblem({ status, body }))
      if (options.json !== true) process.stdout.write('The address of operator events is enabled.\n')
    })
  return addRelayOptions(command)
}

function explain(answer: unknown): string {
  const { what, todo } = explainAttempt(answer, { url: 'operator.url', extent: 'all', endpoint: null })
  return `${what} ${todo}`
}

function testCommand(): Command {
  const command = new Command('test')
    .description('send a test event to operator.url through a running relay, and say what it answered')
    .action(async (options: ClientOptions) => {
      const ask = await openRelay(options)
      const { status, body } = await ask('POST', '/relay/operator/test')
      if (status !== 200) return fail(describeProblem({ status, body }))
      if (options.json === true) process.stdout.write(`${JSON.stringify(body)}\n`)
      const answered = memberOf(body, 'status')
      const what = typeof answered === 'number' ? `status ${answered}` : (textOf(body, 'reason') ?? 'no answer').replaceAll('_', ' ')
      if (textOf(body, 'result') !== 'accepted') return fail(`the test event was not accepted: ${what}. ${explain(body)}`)
      if (options.json !== true) process.stdout.write(`The test event was accepted (${what}).\n`)
    })
  return addRelayOptions(command)
}
