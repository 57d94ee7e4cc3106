import { Command, InvalidArgumentError, Option } from 'commander'
import { secretInVariable } from '../../config/signing-keys.ts'
import { addRelayOptions, type ClientOptions, describeProblem, listOf, openRelay, textOf } from '../asking/ask-relay.ts'
import { fail } from '../exit-codes.ts'
import { addKeyOptions, type KeyOptions, keyIn, printKey } from './shared-key.ts'

interface AddOptions extends ClientOptions, KeyOptions {
  readonly status?: readonly string[]
  readonly detailedStatus?: readonly string[]
  readonly distributionType?: readonly string[]
  readonly from?: number
  readonly backfill?: boolean
  readonly rate?: number
  readonly concurrency?: number
  readonly signature?: string
  readonly refusals?: string
  readonly header?: readonly string[]
  readonly disabled?: boolean
}

export function addCommand(): Command {
  const each = (value: string, before: readonly string[] = []) => [...before, value]
  const command = new Command('add')
    .description('push events to a URL from now on; without a key, the relay makes one and shows it once')
    .argument('<name>', 'what to call it')
    .argument('<url>', 'where to push, such as https://shop.internal/parcel-events')
    .option('--status <value>', 'only events with this status; may be repeated', each)
    .option('--detailed-status <value>', 'only events with this detailed status; may be repeated', each)
    .option('--distribution-type <value>', 'only events of parcels with this distribution type; may be repeated', each)
    .option('--from <sequence>', 'start with this sequence of the feed instead of with what comes from now on', wholeNumber)
    .option('--backfill', 'also push what happened before the endpoint began, which polls of newly known parcels find')
    .option('--rate <number>', 'attempts per second at most', positiveNumber)
    .option('--concurrency <count>', 'attempts at the same time at most', wholeNumber)
    .addOption(new Option('--signature <kind>', 'how pushes are signed').choices(['carrier', 'standard-webhooks']))
    .addOption(
      new Option('--refusals <what>', 'when a push is refused: let its parcel’s later pushes wait, or skip the refused one').choices([
        'wait',
        'skip',
      ]),
    )
    .option('--header <name=variable>', 'send this header, with the value of an environment variable; may be repeated', each)
    .option('--disabled', 'add it, but push nothing until it is enabled')
    .action(async (name: string, url: string, options: AddOptions) => {
      const ask = await openRelay(options)
      const key = keyIn(options)
      const text = JSON.stringify({ name, url, ...settingsIn(options), ...headersIn(options), ...key })
      const answer = await ask('POST', '/relay/endpoints', { type: 'application/json', text })
      if (answer.status !== 201) return fail(describeProblem(answer))
      if (options.json === true) return void process.stdout.write(`${JSON.stringify(answer.body)}\n`)
      for (const warning of listOf(answer.body, 'warnings')) process.stderr.write(`warning: ${String(warning)}\n`)
      process.stdout.write(`${name} is added as number ${textOf(answer.body, 'id') ?? ''}. Try it: parcel-relay endpoints test ${name}\n`)
      printKey(answer.body, key)
    })
  return addRelayOptions(addKeyOptions(command))
}

/** Returns only the settings that the user gave. The relay fills in the defaults of the others. */
function settingsIn({
  status,
  detailedStatus,
  distributionType,
  from,
  backfill,
  rate,
  concurrency,
  signature,
  refusals,
  disabled,
}: AddOptions) {
  return {
    filters: defined({ status, detailedStatus, distributionType }),
    ...defined({ from, backfill, rate, concurrency, signature, refusals }),
    ...(disabled === true ? { enabled: false } : {}),
  }
}

/** Reads the values of headers from environment variables. A value may be a credential, and `ps` and the shell history show arguments. */
function headersIn({ header = [] }: AddOptions): { readonly headers?: Readonly<Record<string, string>> } {
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
