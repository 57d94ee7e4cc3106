import { Command } from 'commander'
import { counted } from '../../domain/amounts.ts'
import { type AskRelay, addRelayOptions, type ClientOptions, describeProblem, memberOf, openRelay, textOf } from '../asking/ask-relay.ts'
import { EXIT, fail } from '../exit-codes.ts'
import { type FoundEndpoint, findEndpoint } from './find-endpoint.ts'
import { describeAnswer, dueNow, explainAttempt } from './present-endpoint.ts'
import { addKeyOptions, type KeyOptions, keyIn, printKey } from './shared-key.ts'

type Act<Options> = (ask: AskRelay, endpoint: FoundEndpoint, options: Options) => Promise<void>

/** Creates a command whose argument is one endpoint, by name or id. */
function aboutOne<Options extends ClientOptions>(
  name: string,
  description: string,
  act: Act<Options>,
  find: (ask: AskRelay, nameOrId: string, options: Options) => Promise<FoundEndpoint> = findEndpoint,
): Command {
  return new Command(name)
    .description(description)
    .argument('<endpoint>', 'its name or id')
    .action(async (nameOrId: string, options: Options) => {
      const ask = await openRelay(options)
      await act(ask, await find(ask, nameOrId, options), options)
    })
}

function print(options: ClientOptions, body: unknown, sentence: string): void {
  process.stdout.write(options.json === true ? `${JSON.stringify(body)}\n` : `${sentence}\n`)
}

function waitingFor(body: unknown): string {
  return counted(Number(memberOf(body, 'waiting')), 'delivery', 'deliveries')
}

/** `endpoints enable` and `endpoints disable`. */
export function switchCommand(verb: 'enable' | 'disable'): Command {
  const isOn = verb === 'enable'
  const description = isOn ? 'push to it again, beginning with what waits for it' : 'push nothing to it; its events wait'
  const command = aboutOne(verb, description, async (ask, { id, name }, options) => {
    const text = JSON.stringify({ enabled: isOn })
    const answer = await ask('PATCH', `/relay/endpoints/${id}`, { type: 'application/json', text })
    if (answer.status !== 200) return fail(describeProblem(answer))
    const waiting = waitingFor(answer.body)
    print(
      options,
      answer.body,
      isOn ? `${name} is enabled: ${waiting} to send.` : `${name} is disabled: ${waiting} for it until it is enabled.`,
    )
  })
  return addRelayOptions(command)
}

export function retryCommand(): Command {
  const command = aboutOne('retry', 'attempt everything that waits for it now', async (ask, { id, name }, options) => {
    const answer = await ask('POST', `/relay/endpoints/${id}/retry`)
    if (answer.status !== 202) return fail(describeProblem(answer))
    print(options, answer.body, `${name}: ${dueNow(answer.body)}.`)
  })
  return addRelayOptions(command)
}

interface RotateOptions extends ClientOptions, KeyOptions {
  readonly now?: boolean
}

export function rotateCommand(): Command {
  const description = 'replace its key: both keys sign for 24 h, then the new one alone; the relay makes a key if none is named'
  const command = aboutOne<RotateOptions>('rotate', description, async (ask, { id, name, body }, options) => {
    const key = keyIn(options)
    const dropped = textOf(body, 'nextKeyFrom')
    const text = JSON.stringify({ ...key, ...(options.now === true ? { at: 'now' } : {}) })
    const answer = await ask('POST', `/relay/endpoints/${id}/rotate`, { type: 'application/json', text })
    if (answer.status !== 200) return fail(describeProblem(answer))
    const next = textOf(answer.body, 'nextKeyFrom')
    const until = next === null ? 'the new key alone signs from now on' : `both keys sign until ${next}, then the new one alone`
    print(options, answer.body, `${name}: ${until}.`)
    if (dropped !== null && next !== null)
      process.stderr.write(
        `warning: the key that was to take over at ${dropped} is dropped. A receiver that already uses that key refuses everything until it gets the new one.\n`,
      )
    if (options.json !== true) printKey(answer.body, key)
  }).option('--now', 'end the time in which both keys sign; with --key-file or --key-env, replace the key without such a time')
  return addRelayOptions(addKeyOptions(command))
}

export function testCommand(): Command {
  const command = aboutOne('test', 'send it a test push, and show what it answers', async (ask, { id, name, body }, options) => {
    const answer = await ask('POST', `/relay/endpoints/${id}/test`)
    if (answer.status !== 200) return fail(describeProblem(answer))
    const isAccepted = textOf(answer.body, 'result') === 'accepted'
    const took = `after ${Number(memberOf(answer.body, 'durationMs'))} ms`
    print(
      options,
      answer.body,
      `${name} ${isAccepted ? 'accepts the test push' : 'does not accept the test push'}: ${describeAnswer(answer.body)}, ${took}.`,
    )
    if (isAccepted) return
    const { what, todo } = explainAttempt(answer.body, { url: textOf(body, 'url') ?? '', extent: 'all', endpoint: body })
    process.stderr.write(`${what} ${todo}\n`)
    process.exitCode = EXIT.failed
  })
  return addRelayOptions(command)
}

interface RemoveOptions extends ClientOptions {
  readonly yes?: boolean
}

export function removeCommand(): Command {
  const description = 'remove it, with what waits for it; without --yes only says what would go'
  const act: Act<RemoveOptions> = async (ask, { id, name, body }, options) => {
    if (options.yes !== true)
      return print(options, body, `${waitingFor(body)} for ${name} would be cancelled. Nothing was removed. Say --yes to remove it.`)
    const answer = await ask('DELETE', `/relay/endpoints/${id}`)
    if (answer.status !== 204) return fail(describeProblem(answer))
    print(options, { id, name, removed: true }, `${name} is removed.`)
  }
  const command = aboutOne<RemoveOptions>('remove', description, act, findToRemove).option(
    '--yes',
    'remove it; without it nothing is changed',
  )
  return addRelayOptions(command)
}

/** The relay does not show an endpoint whose row is damaged, but removes it by its id. */
async function findToRemove(ask: AskRelay, nameOrId: string, { yes }: RemoveOptions): Promise<FoundEndpoint> {
  if (yes !== true || !/^\d{1,15}$/.test(nameOrId)) return await findEndpoint(ask, nameOrId)
  return await findEndpoint(ask, nameOrId).catch(() => ({ id: nameOrId, name: `endpoint ${nameOrId}`, body: null }))
}
