import { Command, InvalidArgumentError, Option } from 'commander'
import { addRelayOptions, type ClientOptions, openRelay, print } from '../../console/cli/asking/ask-relay.ts'
import { fail, failUsage } from '../../console/cli/exit-codes.ts'
import { createProgressLine } from '../../console/cli/terminal.ts'
import { counted, countText } from '../../core/domain/amounts.ts'
import { describeFailure } from '../../core/domain/system-reason.ts'
import type { FeedAnswer } from '../../core/http/delivery/events.routes.ts'
import type { ExportReport } from './export-feed.ts'
import type { ExportFolder } from './export-folder.ts'
import { FORMATS, type Format, parsePage } from './flat-rows.rules.ts'

interface Options extends ClientOptions {
  readonly to?: string
  readonly format?: Format
  readonly rows: number
  readonly until?: number
  readonly afterRestore?: boolean
  readonly applyErasures?: string
}

/** `export`: writes the feed of a running relay to files for a data warehouse. */
export function exportCommand(): Command {
  const command = new Command('export')
    .description('write what the feed has gained since the last export to new files of a folder, for a data warehouse (docs/insight.md)')
    .option('--to <folder>', 'the folder, made if it is missing; its manifest.json names the files that count')
    .addOption(new Option('--format <format>', "the format of the files; by default the folder's, or ndjson").choices(FORMATS))
    .option('--rows <count>', 'begin another file after this many rows', readCount, 100_000)
    .option('--until <sequence>', 'export no event after this sequence', readCount)
    .option('--after-restore', 'if the relay was restored from a backup: remove the files that were exported since the backup, then go on')
    .option('--apply-erasures <folder>', 'write the files of this folder anew without the rows of erased parcels; no relay is asked')
    .action(async ({ to, applyErasures: erased, ...options }: Options) => {
      if ((to === undefined) === (erased === undefined)) return failUsage('export: name a folder with --to or with --apply-erasures')
      try {
        await (to === undefined ? applyTo(erased ?? '', options) : exportTo(to, options))
      } catch (error) {
        fail(`export: ${describeFailure(error)}. What was exported before is as it was.`)
      }
    })
  return addRelayOptions(command, 'status')
}

function readCount(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of at least 1.')
  return Number(text)
}

async function inFolder<T>(directory: string, isMade: boolean, work: (folder: ExportFolder) => Promise<T>): Promise<T> {
  const { openExportFolder } = await import('./export-folder.ts')
  const folder = openExportFolder(directory, isMade)
  try {
    return await work(folder)
  } finally {
    folder.close()
  }
}

async function exportTo(
  to: string,
  { format, rows, until, afterRestore, ...options }: Omit<Options, 'to' | 'applyErasures'>,
): Promise<void> {
  const ask = await openRelay(options, parsePage)
  const { exportFeed } = await import('./export-feed.ts')
  const line = createProgressLine(process.stderr)
  const progress = (done: number, total: number) => line.show('exporting', done, total, 'sequences')
  const asked = { format: format ?? null, rowsMax: rows, until: until ?? null, afterRestore: afterRestore === true, progress }
  const read = (after: number, limit: number) => ask<FeedAnswer>('GET', `/relay/events?after=${after}&limit=${limit}`)
  const report = await inFolder(to, true, (folder) => exportFeed(folder, read, asked)).finally(() => line.end())
  print(options, { to, ...report }, describe(to, report))
}

function describe(to: string, { rows, files, after, cursor, rewoundRows }: ExportReport): string {
  const removed = `${to}: ${counted(rewoundRows, 'row', 'rows')} after sequence ${after}, exported since the backup, removed.\n`
  const rewound = rewoundRows === 0 ? '' : removed
  if (files.length === 0) return `${rewound}${to}: nothing is new after sequence ${after}.\n`
  return `${rewound}${to}: ${counted(rows, 'row', 'rows')} in ${counted(files.length, 'new file', 'new files')}, up to sequence ${cursor}.\n`
}

async function applyTo(directory: string, options: ClientOptions): Promise<void> {
  const { applyErasures } = await import('./remove-rows.ts')
  await inFolder(directory, false, async (folder) => {
    const manifest = folder.manifest()
    if (manifest === null) throw new Error(`${directory} has no export: its manifest.json is missing`)
    const report = await applyErasures(folder, manifest)
    const { erasedParcels, removedRows, changedFiles } = report
    const text =
      removedRows === 0
        ? `${directory}: no row of an erased parcel is left (${counted(erasedParcels, 'erased parcel', 'erased parcels')}).\n`
        : `${directory}: ${countText(removedRows)} rows of erased parcels went; ${counted(changedFiles, 'file', 'files')} written anew.\n`
    print(options, { folder: directory, ...report }, text)
  })
}
