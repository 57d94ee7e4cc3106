import { type Command, InvalidArgumentError, Option } from 'commander'
import { secretInVariable } from '../../../core/config/signing-keys.ts'
import { EVERY_SETTING, ofEach, type Setting } from '../../../core/domain/delivery/endpoint-settings.ts'

/** Options of `endpoints add` and `endpoints set`, by the names of settings. False: `--no-...` was given, which only `set` has. */
export interface SettingOptions {
  readonly [setting: string]: unknown
  readonly header?: readonly string[]
}

export const each = (value: string, before: unknown = []) => [...[before].flat(), value]

export function addSettingOptions(command: Command): Command {
  for (const row of Object.values(EVERY_SETTING)) command.addOption(optionOf(row))
  return command.option('--header <name=variable>', 'send this header, with the value of an environment variable; may be repeated', each)
}

/** Adds the options of `endpoints set` that take settings back. */
export function addOptionsWithout(command: Command): Command {
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
export function settingsIn(table: Readonly<Record<string, Setting>>, options: SettingOptions): object {
  return defined(
    ofEach(table, ({ kind }, name) => {
      const given = options[name]
      if (kind === 'flag') return given
      return given === false ? null : kind === 'either' && given !== undefined ? given === 'yes' : given
    }),
  )
}

/** Reads the values of headers from environment variables. A value may be a credential, and `ps` and the shell history show arguments. */
export function headersIn({ header = [] }: SettingOptions): { readonly headers?: Readonly<Record<string, string>> } {
  const headers = header.map((given) => {
    const [, name = '', variable = ''] = /^([^=\s]+)=(\w+)$/.exec(given) ?? []
    if (name === '')
      throw new Error('--header must be the name of a header and of an environment variable, such as Authorization=SHOP_TOKEN')
    return [name, secretInVariable(`--header ${name}`, variable)] as const
  })
  return headers.length === 0 ? {} : { headers: Object.fromEntries(headers) }
}

export function defined(members: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}

export function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}

function positiveNumber(text: string): number {
  if (!/^\d{1,9}(\.\d{1,9})?$/.test(text) || Number(text) === 0) throw new InvalidArgumentError('It must be a number above 0.')
  return Number(text)
}
