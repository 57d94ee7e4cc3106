import { Command } from 'commander'
import { signingKeysIn } from '../../../core/config/signing-keys.ts'
import { counted } from '../../../core/domain/amounts.ts'
import type { EndpointAnswer, KeyedEndpointAnswer } from '../../../core/http/delivery/endpoints.routes.ts'
import type { TestAnswer } from '../../events/operator.routes.ts'
import { type AskRelay, addRelayOptions, type ClientOptions, openRelay, order, print } from '../asking/ask-relay.ts'
import { EXIT } from '../exit-codes.ts'
import { findEndpoint } from './find-endpoint.ts'
import { describeAnswer, dueNow, explainAttempt } from './present-endpoint.ts'

/** Creates a command whose argument is one endpoint, by name or id. */
function aboutOne<Options extends ClientOptions, Found>(
  name: string,
  description: string,
  find: (ask: AskRelay, nameOrId: string, options: Options) => Promise<Found>,
  act: (ask: AskRelay, endpoint: Found, options: Options) => Promise<void>,
): Command {
  return new Command(name)
    .description(description)
    .argument('<endpoint>', 'its name or id')
    .action(async (nameOrId: string, options: Options) => {
      const ask = await openRelay(options)
      await act(ask, await find(ask, nameOrId, options), options)
    })
}

function waitingFor({ waiting }: Pick<EndpointAnswer, 'waiting'>): string {
  return counted(waiting, 'delivery', 'deliveries')
}

/** `endpoints enable` and `endpoints disable`. */
export function switchCommand(verb: 'enable' | 'disable'): Command {
  const isOn = verb === 'enable'
  const description = isOn ? 'push to it again, beginning with what waits for it' : 'push nothing to it; its events wait'
  const command = aboutOne(verb, description, findEndpoint, async (ask, { id, name }, options) => {
    const body = await order<EndpointAnswer>(ask, 'PATCH', `/relay/endpoints/${id}`, { enabled: isOn })
    const waiting = waitingFor(body)
    print(
      options,
      body,
      isOn ? `${name} is enabled: ${waiting} to send.\n` : `${name} is disabled: ${waiting} for it until it is enabled.\n`,
    )
  })
  return addRelayOptions(command)
}

export function retryCommand(): Command {
  const command = aboutOne('retry', 'attempt everything that waits for it now', findEndpoint, async (ask, { id, name }, options) => {
    const body = await order<EndpointAnswer>(ask, 'POST', `/relay/endpoints/${id}/retry`)
    print(options, body, `${name}: ${dueNow(body)}.\n`)
  })
  return addRelayOptions(command)
}

interface RotateOptions extends ClientOptions, KeyOptions {
  readonly now?: boolean
}

export function rotateCommand(): Command {
  const description = 'replace its key: both keys sign for 24 h, then the new one alone; the relay makes a key if none is named'
  const act = async (ask: AskRelay, { id, name, nextKeyFrom: dropped }: EndpointAnswer, options: RotateOptions) => {
    const key = keyIn(options)
    const given = { ...key, ...(options.now === true ? { at: 'now' } : {}) }
    const body = await order<KeyedEndpointAnswer>(ask, 'POST', `/relay/endpoints/${id}/rotate`, given)
    const next = body.nextKeyFrom
    const until = next === null ? 'the new key alone signs from now on' : `both keys sign until ${next}, then the new one alone`
    print(options, body, `${name}: ${until}.\n`)
    if (dropped !== null && next !== null)
      process.stderr.write(
        `warning: the key that was to take over at ${dropped} is dropped. A receiver that already uses that key refuses everything until it gets the new one.\n`,
      )
    if (options.json !== true) printKey(body, key)
  }
  const command = aboutOne('rotate', description, findEndpoint, act).option(
    '--now',
    'end the time in which both keys sign; with --key-file or --key-env, replace the key without such a time',
  )
  return addRelayOptions(addKeyOptions(command))
}

export function testCommand(): Command {
  const command = aboutOne('test', 'send it a test push, and show what it answers', findEndpoint, async (ask, endpoint, options) => {
    const { id, name, url } = endpoint
    const body = await order<TestAnswer>(ask, 'POST', `/relay/endpoints/${id}/test`)
    const isAccepted = body.result === 'accepted'
    const said = `${isAccepted ? 'accepts the test push' : 'does not accept the test push'}: ${describeAnswer(body)}, after ${body.durationMs} ms`
    print(options, body, `${name} ${said}.\n`)
    if (isAccepted) return
    const { what, todo } = explainAttempt(body, { url, extent: 'all', endpoint })
    process.stderr.write(`${what} ${todo}\n`)
    process.exitCode = EXIT.failed
  })
  return addRelayOptions(command)
}

interface RemoveOptions extends ClientOptions {
  readonly yes?: boolean
}

type Removable = Pick<EndpointAnswer, 'id' | 'name' | 'waiting'>

export function removeCommand(): Command {
  const description = 'remove it, with what waits for it; without --yes only says what would go'
  const command = aboutOne('remove', description, findToRemove, async (ask, endpoint, options) => {
    const { id, name } = endpoint
    if (options.yes !== true) {
      const would = `${waitingFor(endpoint)} for ${name} would be cancelled. Nothing was removed. Say --yes to remove it.\n`
      return print(options, endpoint, would)
    }
    await order(ask, 'DELETE', `/relay/endpoints/${id}`)
    print(options, { id, name, removed: true }, `${name} is removed.\n`)
  }).option('--yes', 'remove it; without it nothing is changed')
  return addRelayOptions(command)
}

/** The relay does not show an endpoint whose row is damaged, but removes it by its id. */
async function findToRemove(ask: AskRelay, nameOrId: string, { yes }: RemoveOptions): Promise<Removable> {
  if (yes !== true || !/^\d{1,15}$/.test(nameOrId)) return await findEndpoint(ask, nameOrId)
  return await findEndpoint(ask, nameOrId).catch(() => ({ id: nameOrId, name: `endpoint ${nameOrId}`, waiting: 0 }))
}

export interface KeyOptions {
  readonly keyFile?: string
  readonly keyEnv?: string
}

/** Adds the options that name a key. The key itself is never an argument, because `ps` and the shell history show arguments. */
export function addKeyOptions(command: Command): Command {
  return command
    .option('--key-file <file>', 'sign with the key in this file')
    .option('--key-env <name>', 'sign with the key in this environment variable')
}

/** Reads the key for the `sharedKey` member of a request. If the user named no key, there is no member, and the relay makes a key. */
export function keyIn({ keyFile, keyEnv }: KeyOptions): { readonly sharedKey?: string } {
  if (keyFile !== undefined && keyEnv !== undefined) throw new Error('name the key with --key-file or with --key-env, not with both')
  const [key] = signingKeysIn(keyFile === undefined ? [] : [keyFile], keyEnv === undefined ? [] : [keyEnv]).push
  return key === undefined ? {} : { sharedKey: key.key }
}

/** Prints a key that the relay has made. A key that the user gave is not printed, because it is known and should not appear on a screen. */
export function printKey({ sharedKey }: KeyedEndpointAnswer, given: { readonly sharedKey?: string }): void {
  if (sharedKey !== undefined && given.sharedKey === undefined)
    process.stdout.write(`Its key, which is shown only this once: ${sharedKey}\n`)
}
