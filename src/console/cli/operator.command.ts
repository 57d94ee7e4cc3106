import { Command } from 'commander'
import type { TestAnswer } from '../events/operator.routes.ts'
import { asking, type ClientOptions, order } from './asking/ask-relay.ts'
import { fail } from './exit-codes.ts'
import { explainAttempt } from './present-endpoint.ts'

/** `operator`: commands about the address to which the relay posts operator events. */
export function operatorCommand(): Command {
  return new Command('operator')
    .description('the address that operator events are posted to')
    .addCommand(testCommand())
    .addCommand(enableCommand())
}

function enableCommand(): Command {
  const command = new Command('enable').description('enable operator.url after its answers have disabled it; events that wait are sent')
  return asking(command, async (ask, options: ClientOptions) => {
    await order(ask, 'POST', '/relay/operator/enable')
    if (options.json !== true) process.stdout.write('The address of operator events is enabled.\n')
  })
}

function explain(answer: TestAnswer): string {
  const { what, todo } = explainAttempt(answer, { url: 'operator.url', extent: 'all', endpoint: null })
  return `${what} ${todo}`
}

function testCommand(): Command {
  const command = new Command('test').description('send a test event to operator.url through a running relay, and say what it answered')
  return asking(command, async (ask, options: ClientOptions) => {
    const body = await order<TestAnswer>(ask, 'POST', '/relay/operator/test')
    if (options.json === true) process.stdout.write(`${JSON.stringify(body)}\n`)
    const what = body.status === null ? (body.reason ?? 'no answer').replaceAll('_', ' ') : `status ${body.status}`
    if (body.result !== 'accepted') return fail(`the test event was not accepted: ${what}. ${explain(body)}`)
    if (options.json !== true) process.stdout.write(`The test event was accepted (${what}).\n`)
  })
}
