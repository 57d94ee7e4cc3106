import { Command } from 'commander'
import { counted } from '../../domain/amounts.ts'
import {
  type AskRelay,
  addRelayOptions,
  type ClientOptions,
  describeProblem,
  listOf,
  memberOf,
  openRelay,
  textOf,
  typedIdentifier,
} from '../asking/ask-relay.ts'
import { sendList } from '../asking/list-file.ts'
import { describeParcelProblem } from '../asking/unknown.ts'
import { EXIT, fail } from '../exit-codes.ts'

interface ForgetOptions extends ClientOptions {
  readonly file?: string
  readonly column?: string
  readonly yes?: boolean
}

/** `forget`: erases parcels for good, through a running relay. */
export function forgetCommand(): Command {
  const command = new Command('forget')
    .description('erase the parcels named, or those listed in a file, for good; without --yes only says what would go')
    .argument('[identifiers...]')
    .option('--file <file>', 'NDJSON, or CSV if its name ends in .csv (see docs/api.md); reports bad and unknown lines by number')
    .option('--column <column>', 'the column of a CSV file to read: its name, or its number from 1')
    .option('--yes', 'erase; without it nothing is changed')
    .action(async (identifiers: readonly string[], options: ForgetOptions) => {
      if ((identifiers.length === 0) === (options.file === undefined) || (options.column !== undefined && options.file === undefined)) {
        process.stderr.write('forget: name parcels, or use --file; --column belongs to a file\n')
        process.exitCode = EXIT.usage
        return
      }
      const ask = await openRelay(options)
      if (options.file === undefined) await forgetNamed(ask, identifiers, options)
      else await forgetFile(ask, options.file, options)
      if (options.yes !== true && options.json !== true) process.stdout.write('Nothing was erased. Say --yes to erase it.\n')
    })
  return addRelayOptions(command)
}

async function forgetNamed(ask: AskRelay, identifiers: readonly string[], { json, yes }: ForgetOptions): Promise<void> {
  for (const identifier of identifiers) {
    const answer = await ask('DELETE', `/relay/parcels/${typedIdentifier(identifier)}?dryRun=${yes !== true}`)
    if (answer.status !== 200) fail(await describeParcelProblem(ask, identifier, answer))
    else if (json === true) process.stdout.write(`${JSON.stringify(answer.body)}\n`)
    else process.stdout.write(`${identifier}: ${describe(answer.body, yes === true)}${describeReceipts(answer.body)}`)
  }
}

async function forgetFile(ask: AskRelay, file: string, { json, column, yes }: ForgetOptions): Promise<void> {
  const wrong: string[] = []
  const reports: unknown[] = []
  await sendList({ file, column, step: yes === true ? 'erasing' : 'counting' }, async ({ type, text, query, lineOf }) => {
    const path = `/relay/parcels/forget?${[`dryRun=${yes !== true}`, ...query].join('&')}`
    const answer = await ask('POST', path, { type, text })
    if (answer.status !== 200) throw new Error(describeProblem(answer))
    for (const error of listOf(answer.body, 'errors'))
      wrong.push(`${file}:${lineOf(Number(memberOf(error, 'line')))} ${textOf(error, 'reason') ?? ''}`)
    if (json === true) process.stdout.write(`${JSON.stringify(answer.body)}\n`)
    reports.push(answer.body)
  })
  if (json !== true && reports.length > 0) {
    const whole = united(reports)
    process.stdout.write(`${counted(whole.erased, 'parcel', 'parcels')}: ${describe(whole, yes === true)}`)
    if (yes === true) process.stdout.write(`  ${describeOrder(reports.at(-1))}; --json prints a receipt for each identifier\n`)
  }
  if (wrong.length > 0) fail(wrong.join('\n'))
}

/** Adds up the reports on the parts of a list to one report. */
function united(reports: readonly unknown[]) {
  const sum = (name: string) => reports.reduce<number>((total, report) => total + Number(memberOf(report, name) ?? 0), 0)
  const removed: Record<string, number> = {}
  for (const [what, count] of reports.flatMap((report) => Object.entries(memberOf(report, 'removed') ?? {})))
    removed[what] = (removed[what] ?? 0) + Number(count)
  const endpoints = new Map(
    reports.flatMap((report) => listOf(report, 'endpoints').map((one) => [textOf(one, 'name') ?? '', one] as const)),
  )
  const each = (name: string) => [...new Set(reports.flatMap((report) => listOf(report, name).map(String)))]
  const lists = { endpoints: [...endpoints.values()], backups: each('backups'), stores: each('stores') }
  // The state of the storage after the last part is the state for all parts.
  const last = reports.at(-1)
  const storage = {
    storage: textOf(last, 'storage'),
    storageBecause: textOf(last, 'storageBecause'),
    backupsUnreadable: textOf(last, 'backupsUnreadable'),
    restoredAt: textOf(last, 'restoredAt'),
  }
  return { erased: sum('erased'), removed, ...lists, unreadable: sum('unreadable'), ...storage }
}

/** The singular of each name of a count. The relay's answer has the plural. */
const SINGULAR: ReadonlyMap<string, string> = new Map([
  ['parcels', 'parcel'],
  ['identifiers', 'identifier'],
  ['sightings', 'sighting'],
  ['answers', 'answer'],
  ['pushes', 'push'],
  ['deliveries', 'delivery'],
  ['attempts', 'attempt'],
  ['texts', 'text'],
  ['mentions', 'mention'],
])

/** Says when, by whom and of which relay something was erased. */
function describeOrder(report: unknown): string {
  return `ordered at ${textOf(report, 'at') ?? ''} by ${textOf(memberOf(report, 'by'), 'name') ?? ''}, relay ${textOf(report, 'relay') ?? ''}`
}

/** The evidence for whoever asked to erase a parcel. */
function describeReceipts(report: unknown): string {
  return listOf(report, 'receipts')
    .map((receipt) => {
      const was = textOf(receipt, 'outcome') === 'erased_before' ? 'was erased before, ' : 'erased '
      const parcel = textOf(receipt, 'parcel')
      return `  receipt: ${was}at ${textOf(receipt, 'erasedAt') ?? ''}${parcel === null ? '' : `, parcel ${parcel}`}; ${describeOrder(report)}\n  marks: ${listOf(receipt, 'marks').join(' ')}\n`
    })
    .join('')
}

function unreadableFolder(because: string | null): readonly string[] {
  return because === null ? [] : [`  the folder of backups cannot be read, and its backups may hold it: ${because}\n`]
}

/** Says why backups are named that may be clean. */
function olderThan(restoredAt: string | null): string {
  return restoredAt === null ? '' : ` (with all that are older than the last restore, at ${restoredAt}, whatever they hold)`
}

/** Lists the data that is erased or would be erased, and where copies may remain. */
function describe(report: unknown, isErased: boolean): string {
  const removed = Object.entries(memberOf(report, 'removed') ?? {}).filter(([, count]) => Number(count) > 0)
  const counts =
    removed.length === 0 ? 'nothing' : removed.map(([what, count]) => counted(Number(count), SINGULAR.get(what) ?? what, what)).join(', ')
  const named = (name: string, list: readonly string[]) => (list.length === 0 ? '' : `  ${name}: ${list.join(', ')}\n`)
  const endpoints = listOf(report, 'endpoints').map((endpoint) => textOf(endpoint, 'name') ?? '')
  const backups = listOf(report, 'backups').map(String)
  const unreadable = Number(memberOf(report, 'unreadable'))
  return [
    `${isErased ? 'erased' : 'would erase'} ${counts}\n`,
    named('was sent to', endpoints),
    named(`backups that may hold it${olderThan(textOf(report, 'restoredAt'))}`, backups),
    named('replaced stores that may hold it: delete them', listOf(report, 'stores').map(String)),
    unreadable === 0 ? '' : `  ${counted(unreadable, 'stored record', 'stored records')} may name it and stay: see "parcel-relay inbox"\n`,
    ...unreadableFolder(textOf(report, 'backupsUnreadable')),
    isErased ? `${`  storage: ${textOf(report, 'storage') ?? ''}. ${textOf(report, 'storageBecause') ?? ''}`.trimEnd()}\n` : '',
  ].join('')
}
