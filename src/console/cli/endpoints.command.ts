import { Command, InvalidArgumentError, Option } from 'commander'
import { secretInVariable, signingKeysIn } from '../../core/config/signing-keys.ts'
import { counted } from '../../core/domain/amounts.ts'
import { EVERY_SETTING, FILTERS, ofEach, SETTINGS, type Setting } from '../../core/domain/delivery/endpoint-settings.ts'
import type { EndpointAnswer, InspectedEndpointAnswer, KeyedEndpointAnswer } from '../../core/http/delivery/endpoints.routes.ts'
import type { TestAnswer } from '../events/operator.routes.ts'
import { type AskRelay, addRelayOptions, asking, type ClientOptions, openRelay, order, print } from './asking/ask-relay.ts'
import { everyEndpoint, findEndpoint } from './asking/lists.ts'
import { EXIT, failUsage } from './exit-codes.ts'
import { describeAnswer, dueNow, explainAttempt, presentEndpoint, presentEndpoints } from './present-endpoint.ts'

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
function switchCommand(verb: 'enable' | 'disable'): Command {
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

function retryCommand(): Command {
  const command = aboutOne('retry', 'attempt everything that waits for it now', findEndpoint, async (ask, { id, name }, options) => {
    const body = await order<EndpointAnswer>(ask, 'POST', `/relay/endpoints/${id}/retry`)
    print(options, body, `${name}: ${dueNow(body)}.\n`)
  })
  return addRelayOptions(command)
}

interface RotateOptions extends ClientOptions, KeyOptions {
  readonly now?: boolean
}

function rotateCommand(): Command {
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

function testCommand(): Command {
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

type Removable = Pick<EndpointAnswer, 'id' | 'name' | 'waiting'>

function removeCommand(): Command {
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
async function findToRemove(ask: AskRelay, nameOrId: string, { yes }: ClientOptions & { readonly yes?: boolean }): Promise<Removable> {
  if (yes !== true || !/^\d{1,15}$/.test(nameOrId)) return await findEndpoint(ask, nameOrId)
  return await findEndpoint(ask, nameOrId).catch(() => ({ id: nameOrId, name: `endpoint ${nameOrId}`, waiting: 0 }))
}

interface KeyOptions {
  readonly keyFile?: string
  readonly keyEnv?: string
}

/** Adds the options that name a key. The key itself is never an argument, because `ps` and the shell history show arguments. */
function addKeyOptions(command: Command): Command {
  return command
    .option('--key-file <file>', 'sign with the key in this file')
    .option('--key-env <name>', 'sign with the key in this environment variable')
}

/** Reads the key for the `sharedKey` member of a request. If the user named no key, there is no member, and the relay makes a key. */
function keyIn({ keyFile, keyEnv }: KeyOptions): { readonly sharedKey?: string } {
  if (keyFile !== undefined && keyEnv !== undefined) throw new Error('name the key with --key-file or with --key-env, not with both')
  const [key] = signingKeysIn(keyFile === undefined ? [] : [keyFile], keyEnv === undefined ? [] : [keyEnv]).push
  return key === undefined ? {} : { sharedKey: key.key }
}

/** Prints a key that the relay has made. A key that the user gave is not printed, because it is known and should not appear on a screen. */
function printKey({ sharedKey }: KeyedEndpointAnswer, given: { readonly sharedKey?: string }): void {
  if (sharedKey !== undefined && given.sharedKey === undefined)
    process.stdout.write(`Its key, which is shown only this once: ${sharedKey}\n`)
}

interface SetOptions extends ClientOptions, SettingOptions {
  readonly name?: string
  readonly to?: string
  readonly removeHeader?: readonly string[]
}

/** `endpoints set`: changes the settings that are named, and no others. */
function setCommand(): Command {
  const command = new Command('set')
    .description('change its URL, filters or other settings; what is not named stays as it is')
    .argument('<endpoint>', 'its name or id')
    .option('--to <url>', 'where to push')
    .option('--name <name>', 'what to call it')
  addOptionsWithout(addSettingOptions(command))
    .option('--remove-header <name>', 'no longer send this header; may be repeated', each)
    .action(act)
  return addRelayOptions(command)
}

async function act(nameOrId: string, options: SetOptions): Promise<void> {
  const [filters, change] = [settingsIn(FILTERS, options), changeIn(options)]
  const hasFilters = Object.keys(filters).length > 0
  if (!hasFilters && Object.keys(change).length === 0)
    return failUsage('endpoints set: name what to change, such as --to or --status (see --help)')
  const ask = await openRelay(options)
  const endpoint = await findEndpoint(ask, nameOrId)
  const { id } = endpoint
  // The API takes the filters as a whole, so those that are not named are sent as they are.
  const wanted = { ...change, ...(hasFilters ? { filters: { ...endpoint.filters, ...filters } } : {}) }
  const changed = await order<KeyedEndpointAnswer>(ask, 'PATCH', `/relay/endpoints/${id}`, wanted)
  for (const warning of changed.warnings ?? []) process.stderr.write(`warning: ${warning}\n`)
  if (options.json === true) return void process.stdout.write(`${JSON.stringify(changed)}\n`)
  // The answer to a change lacks the fingerprint of the key.
  process.stdout.write(presentEndpoint(await order<InspectedEndpointAnswer>(ask, 'GET', `/relay/endpoints/${id}`)))
}

/** Returns what the user gave, except filters. A header that is null is removed. */
function changeIn(options: SetOptions): object {
  const { name, to, removeHeader = [] } = options
  const headers = { ...headersIn(options).headers, ...Object.fromEntries(removeHeader.map((header) => [header, null])) }
  return { ...defined({ name, url: to, ...settingsIn(SETTINGS, options) }), ...(Object.keys(headers).length === 0 ? {} : { headers }) }
}

/** Options of `endpoints add` and `endpoints set`, by the names of settings. False: `--no-...` was given, which only `set` has. */
interface SettingOptions {
  readonly [setting: string]: unknown
  readonly header?: readonly string[]
}

const each = (value: string, before: unknown) => [...collected(before), value]
const eachIn = (values: string, before: unknown) => [...collected(before), ...values.split(',').map((value) => value.trim())]

/** What the same option gave before; nothing after `--no-...`. */
const collected = (before: unknown): readonly unknown[] => (Array.isArray(before) ? before : [])

function addSettingOptions(command: Command): Command {
  for (const row of Object.values(EVERY_SETTING)) command.addOption(optionOf(row))
  return command.option('--header <name=variable>', 'send this header, with the value of an environment variable; may be repeated', each)
}

/** Adds the options of `endpoints set` that take settings back. */
function addOptionsWithout(command: Command): Command {
  for (const { option, without } of Object.values(EVERY_SETTING))
    if (without !== undefined) command.option(option[0].replace(/^--([a-z-]+).*/, '--no-$1'), without)
  return command
}

const PARSERS: Readonly<Record<string, (text: string, before: unknown) => unknown>> = {
  values: each,
  amount: positiveNumber,
  count: wholeNumber,
  waits: eachIn,
  several: eachIn,
}

function optionOf(row: Setting): Option {
  const option = new Option(...row.option)
  if (row.kind === 'choice' || row.kind === 'either') return option.choices(row.kind === 'either' ? ['yes', 'no'] : row.names)
  const parser = PARSERS[row.kind]
  return parser === undefined ? option : option.argParser(parser)
}

/** Returns the settings of a table that the user gave, as the API takes them. */
function settingsIn(table: Readonly<Record<string, Setting>>, options: SettingOptions): object {
  return defined(
    ofEach(table, (row) => {
      const { kind } = row
      const given = options[optionOf(row).attributeName()]
      if (kind === 'flag') return given
      return given === false ? null : kind === 'either' && given !== undefined ? given === 'yes' : given
    }),
  )
}

/** Reads the values of headers from environment variables. A value may be a credential, and `ps` and the shell history show arguments. */
function headersIn({ header = [] }: SettingOptions): { readonly headers?: Readonly<Record<string, string>> } {
  const headers = header.map((given) => {
    const [, name = '', variable = ''] = /^([^=\s]+)=(\w+)$/.exec(given) ?? []
    if (name === '')
      throw new Error('--header must be the name of a header and of an environment variable, such as Authorization=SHOP_TOKEN')
    return [name, secretInVariable(`--header ${name}`, variable)] as const
  })
  return headers.length === 0 ? {} : { headers: Object.fromEntries(headers) }
}

function defined(members: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}

function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}

function positiveNumber(text: string): number {
  if (!/^\d{1,9}(\.\d{1,9})?$/.test(text) || Number(text) === 0) throw new InvalidArgumentError('It must be a number above 0.')
  return Number(text)
}

interface AddOptions extends ClientOptions, KeyOptions, SettingOptions {
  readonly from?: number
  readonly disabled?: boolean
}

function addCommand(): Command {
  const command = new Command('add')
    .description('push events to a URL from now on; without a key, the relay makes one and shows it once')
    .argument('<name>', 'what to call it')
    .argument('<url>', 'where to push, such as https://shop.internal/parcel-events')
    .option('--from <sequence>', 'start with this sequence of the feed instead of with what comes from now on', wholeNumber)
    .option('--disabled', 'add it, but push nothing until it is enabled')
    .action(async (name: string, url: string, options: AddOptions) => {
      const ask = await openRelay(options)
      const key = keyIn(options)
      // The relay fills in the defaults of what the user did not give.
      const given = { filters: settingsIn(FILTERS, options), ...settingsIn(SETTINGS, options), ...headersIn(options), ...key }
      const enabled = options.disabled === true ? false : undefined
      const added = await order<KeyedEndpointAnswer>(ask, 'POST', '/relay/endpoints', { name, url, from: options.from, enabled, ...given })
      if (options.json !== true) for (const warning of added.warnings ?? []) process.stderr.write(`warning: ${warning}\n`)
      print(options, added, `${name} is added as number ${added.id}. Try it: parcel-relay endpoints test ${name}\n`)
      if (options.json !== true) printKey(added, key)
    })
  return addRelayOptions(addKeyOptions(addSettingOptions(command)))
}
