import { Command } from 'commander'
import {
  type AskRelay,
  addRelayOptions,
  type ClientOptions,
  describeParcelProblem,
  describeProblem,
  openRelay,
  print,
  typedIdentifier,
} from '../../console/cli/asking/ask-relay.ts'
import { sendList } from '../../console/cli/asking/lists.ts'
import { fail, failUsage } from '../../console/cli/exit-codes.ts'
import { counted } from '../../core/domain/amounts.ts'
import type { ErasureAnswer, ErasureListAnswer } from './erasures.routes.ts'

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
      if ((identifiers.length === 0) === (options.file === undefined) || (options.column !== undefined && options.file === undefined))
        return failUsage('forget: name parcels, or use --file; --column belongs to a file')
      const ask = await openRelay(options)
      if (options.file === undefined) await forgetNamed(ask, identifiers, options)
      else await forgetFile(ask, options.file, options)
      if (options.yes !== true && options.json !== true) process.stdout.write('Nothing was erased. Say --yes to erase it.\n')
    })
  return addRelayOptions(command)
}

async function forgetNamed(ask: AskRelay, identifiers: readonly string[], options: ForgetOptions): Promise<void> {
  const isErased = options.yes === true
  for (const identifier of identifiers) {
    const answer = await ask<ErasureAnswer>('DELETE', `/relay/parcels/${typedIdentifier(identifier)}?dryRun=${!isErased}`)
    if (answer.ok) print(options, answer.body, `${identifier}: ${describe(answer.body, isErased)}${describeReceipts(answer.body)}`)
    else fail(await describeParcelProblem(ask, identifier, answer))
  }
}

async function forgetFile(ask: AskRelay, file: string, { json, column, yes }: ForgetOptions): Promise<void> {
  const wrong: string[] = []
  const reports: ErasureListAnswer[] = []
  await sendList({ file, column, step: yes === true ? 'erasing' : 'counting' }, async ({ type, text, query, lineOf }) => {
    const path = `/relay/parcels/forget?${[`dryRun=${yes !== true}`, ...query].join('&')}`
    const answer = await ask<ErasureListAnswer>('POST', path, { type, text })
    if (!answer.ok) throw new Error(describeProblem(answer))
    wrong.push(...answer.body.errors.map(({ line, reason }) => `${file}:${lineOf(line)} ${reason}`))
    if (json === true) process.stdout.write(`${JSON.stringify(answer.body)}\n`)
    reports.push(answer.body)
  })
  const last = reports.at(-1)
  if (json !== true && last !== undefined) {
    const whole = united(reports, last)
    process.stdout.write(`${counted(whole.erased, 'parcel', 'parcels')}: ${describe(whole, yes === true)}`)
    if (yes === true) process.stdout.write(`  ${describeOrder(last)}; --json prints a receipt for each identifier\n`)
  }
  if (wrong.length > 0) fail(wrong.join('\n'))
}

/** Adds up the reports on the parts of a list to one report. The state of the storage after the last part is the state for all parts. */
function united(reports: readonly ErasureListAnswer[], last: ErasureListAnswer) {
  const sum = (countOf: (report: ErasureListAnswer) => number) => reports.reduce((total, report) => total + countOf(report), 0)
  const each = (name: 'backups' | 'stores') => [...new Set(reports.flatMap((report) => report[name]))]
  const endpoints = new Map(reports.flatMap((report) => report.endpoints.map((one) => [one.name, one] as const)))
  const removed: Record<string, number> = {}
  for (const [what, count] of reports.flatMap((report) => Object.entries(report.removed))) removed[what] = (removed[what] ?? 0) + count
  return {
    ...last,
    removed,
    endpoints: [...endpoints.values()],
    backups: each('backups'),
    stores: each('stores'),
    erased: sum(({ erased }) => erased),
    unreadable: sum(({ unreadable }) => unreadable),
  }
}

const SINGULAR: Readonly<Record<keyof ErasureAnswer['removed'], string>> = {
  parcels: 'parcel',
  identifiers: 'identifier',
  sightings: 'sighting',
  answers: 'answer',
  pushes: 'push',
  deliveries: 'delivery',
  attempts: 'attempt',
  texts: 'text',
  mentions: 'mention',
}

interface Told extends Omit<ErasureAnswer, 'removed'> {
  readonly removed: Readonly<Record<string, number>>
}

/** Says when, by whom and of which relay something was erased. */
function describeOrder({ at, by, relay }: ErasureAnswer): string {
  return `ordered at ${at} by ${by.name}, relay ${relay}`
}

/** The evidence for whoever asked to erase a parcel. */
function describeReceipts(report: ErasureAnswer): string {
  return report.receipts
    .map(({ outcome, parcel, erasedAt, marks }) => {
      const was = outcome === 'erased_before' ? 'was erased before, ' : 'erased '
      const of = parcel === null ? '' : `, parcel ${parcel}`
      return `  receipt: ${was}at ${erasedAt}${of}; ${describeOrder(report)}\n  marks: ${marks.join(' ')}\n`
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
function describe(report: Told, isErased: boolean): string {
  const { removed, endpoints, backups, stores, unreadable, storage, storageBecause } = report
  const counts = Object.entries(SINGULAR)
    .map(([many, one]) => [removed[many] ?? 0, one, many] as const)
    .filter(([count]) => count > 0)
  const named = (name: string, list: readonly string[]) => (list.length === 0 ? '' : `  ${name}: ${list.join(', ')}\n`)
  return [
    `${isErased ? 'erased' : 'would erase'} ${counts.length === 0 ? 'nothing' : counts.map((count) => counted(...count)).join(', ')}\n`,
    named(
      'was sent to',
      endpoints.map(({ name }) => name),
    ),
    named(`backups that may hold it${olderThan(report.restoredAt)}`, backups),
    named('replaced stores that may hold it: delete them', stores),
    unreadable === 0 ? '' : `  ${counted(unreadable, 'stored record', 'stored records')} may name it and stay: see "parcel-relay inbox"\n`,
    ...unreadableFolder(report.backupsUnreadable),
    isErased ? `${`  storage: ${storage}. ${storageBecause ?? ''}`.trimEnd()}\n` : '',
  ].join('')
}
