import { type Command, InvalidArgumentError, Option } from 'commander'
import { secretInVariable } from '../../config/signing-keys.ts'

/** Options of `endpoints add` and `endpoints set`. False: the option was given as `--no-...`, which only `set` has. */
export interface SettingOptions {
  readonly status?: readonly string[] | false
  readonly detailedStatus?: readonly string[] | false
  readonly distributionType?: readonly string[] | false
  readonly displayToConsumer?: 'yes' | 'no' | false
  readonly backfill?: boolean
  readonly rate?: number | false
  readonly concurrency?: number | false
  readonly schedule?: readonly string[] | false
  readonly signature?: string
  readonly refusals?: string
  readonly header?: readonly string[]
}

export const each = (value: string, before: readonly string[] = []) => [...before, value]

export function addSettingOptions(command: Command): Command {
  return command
    .option('--status <value>', 'only events with this status; may be repeated', each)
    .option('--detailed-status <value>', 'only events with this detailed status; may be repeated', each)
    .option('--distribution-type <value>', 'only events of parcels with this distribution type; may be repeated', each)
    .addOption(
      new Option('--display-to-consumer <which>', 'only events that consumers may see, or only those that they may not').choices([
        'yes',
        'no',
      ]),
    )
    .option('--backfill', 'also push what happened before the endpoint began, which polls of newly known parcels find')
    .option('--rate <number>', 'attempts per second at most', positiveNumber)
    .option('--concurrency <count>', 'attempts at the same time at most', wholeNumber)
    .option('--schedule <waits>', 'the waits between attempts, such as 5s,5m,30m', (waits: string) => waits.split(','))
    .addOption(new Option('--signature <kind>', 'how pushes are signed').choices(['carrier', 'standard-webhooks']))
    .addOption(
      new Option('--refusals <what>', 'when a push is refused: let its parcel’s later pushes wait, or skip the refused one').choices([
        'wait',
        'skip',
      ]),
    )
    .option('--header <name=variable>', 'send this header, with the value of an environment variable; may be repeated', each)
}

/** Returns the filters that the user gave; null: any value passes. */
export function filtersIn({ status, detailedStatus, distributionType, displayToConsumer: shown }: SettingOptions): object {
  const displayToConsumer = typeof shown === 'string' ? shown === 'yes' : orNull(shown)
  return defined({
    status: orNull(status),
    detailedStatus: orNull(detailedStatus),
    distributionType: orNull(distributionType),
    displayToConsumer,
  })
}

export function ratesIn({ backfill, rate, concurrency, schedule, signature, refusals }: SettingOptions): object {
  return defined({ backfill, rate: orNull(rate), concurrency: orNull(concurrency), schedule: orNull(schedule), signature, refusals })
}

function orNull<Value>(given: Value | false | undefined): Value | null | undefined {
  return given === false ? null : given
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
