import { Command, InvalidArgumentError, Option } from 'commander'
import { secretInVariable } from '../../../core/config/signing-keys.ts'
import { EVERY_SETTING, FILTERS, ofEach, SETTINGS, type Setting } from '../../../core/domain/delivery/endpoint-settings.ts'
import type { InspectedEndpointAnswer, KeyedEndpointAnswer } from '../../../core/http/delivery/endpoints.routes.ts'
import { addRelayOptions, type ClientOptions, openRelay, order, print } from '../asking/ask-relay.ts'
import { failUsage } from '../exit-codes.ts'
import { addKeyOptions, type KeyOptions, keyIn, printKey } from './change.ts'
import { findEndpoint } from './find-endpoint.ts'
import { presentEndpoint } from './present-endpoint.ts'

interface SetOptions extends ClientOptions, SettingOptions {
  readonly name?: string
  readonly to?: string
  readonly removeHeader?: readonly string[]
}

/** `endpoints set`: changes the settings that are named, and no others. */
export function setCommand(): Command {
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
export interface SettingOptions {
  readonly [setting: string]: unknown
  readonly header?: readonly string[]
}

const each = (value: string, before: unknown = []) => [...[before].flat(), value]

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
  waits: (text) => text.split(','),
}

function optionOf(row: Setting): Option {
  const option = new Option(...row.option)
  if ('names' in row) return option.choices(row.kind === 'either' ? ['yes', 'no'] : row.names)
  const parser = PARSERS[row.kind]
  return parser === undefined ? option : option.argParser(parser)
}

/** Returns the settings of a table that the user gave, as the API takes them. */
function settingsIn(table: Readonly<Record<string, Setting>>, options: SettingOptions): object {
  return defined(
    ofEach(table, ({ kind }, name) => {
      const given = options[name]
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

export function addCommand(): Command {
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
