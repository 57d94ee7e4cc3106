import { Command } from 'commander'
import { asOwnerOfStore, readStoreSettings } from '../../console/cli/asking/config-file.ts'
import { EXIT, fail } from '../../console/cli/exit-codes.ts'
import { counted } from '../../core/domain/amounts.ts'
import { describeFailure } from '../../core/domain/system-reason.ts'
import type { LoadServerStores } from '../stores-on-servers.ts'
import type { markStore, restoreStore } from './run-restore.ts'

interface RestoreOptions {
  readonly config: string
  readonly yes?: boolean
  readonly mark?: boolean
  readonly last?: string
  readonly tombstones?: string
  readonly forgetErasures?: boolean
  readonly withoutKeys?: boolean
  readonly otherRelay?: boolean
  readonly json?: boolean
}

/** `restore`: replaces the store of a stopped relay with a backup. */
export function restoreCommand(loadServer: LoadServerStores): Command {
  return new Command('restore')
    .description('restore a backup as the store, with the relay stopped; the store that was there is kept under another name')
    .argument('[file]', 'the backup: NAME.db, with NAME.key beside it if the relay made that')
    .option(
      '--mark',
      'mark a PostgreSQL database as restored, after the server’s own tools have restored it; needs --last and --tombstones',
    )
    .option('--config <file>', 'the config file that names the store', 'config/relay.yaml')
    .option('--yes', 'replace a store that is newer than the backup')
    .option(
      '--other-relay',
      'replace the store of another relay than the one that made the backup; needs --last and --tombstones or --forget-erasures',
    )
    .option('--last <sequence>', 'the highest sequence that anybody has seen, if the store is gone, cannot be read, or is of another relay')
    .option(
      '--tombstones <file>',
      'what was erased: a copy of the file STORE.tombstones (relay.db.tombstones), if it is not beside the store, or the export of a database (see docs/operating.md)',
    )
    .option('--forget-erasures', 'restore although nobody knows what was erased since the backup')
    .option('--without-keys', 'restore although the at-rest key of the backup is lost: its endpoints then need new keys')
    .option('--json', 'print JSON')
    .action((file: string | undefined, options: RestoreOptions) => restore(file, options, loadServer))
}

async function restore(file: string | undefined, options: RestoreOptions, loadServer: LoadServerStores): Promise<void> {
  const last = options.last === undefined ? null : Number(options.last)
  const mistake = mistakeIn(file, options)
  if (mistake !== null) {
    process.stderr.write(`restore: ${mistake}\n`)
    process.exitCode = EXIT.usage
    return
  }
  const config = await readStoreSettings(options.config)
  if (config === null) return
  const { markStore, restoreStore } = await import('./run-restore.ts')
  const step = (text: string) => void process.stderr.write(`${text}\n`)
  try {
    if (file === undefined) {
      const server = await loadServer()
      reportMark(await markStore(config, { last: last ?? 0, tombstones: options.tombstones ?? null }, server), options)
    } else report(await asOwnerOfStore(config, () => restoreStore(config, orderOf(file, last, options), step)), options)
  } catch (error) {
    fail(describeFailure(error))
  }
}

function orderOf(
  file: string,
  last: number | null,
  { yes, tombstones, forgetErasures, withoutKeys, otherRelay }: RestoreOptions,
): Parameters<typeof restoreStore>[1] {
  return {
    file,
    last,
    isConfirmed: yes === true,
    isOtherRelay: otherRelay === true,
    tombstones: tombstones ?? null,
    forgetsErasures: forgetErasures === true,
    isWithoutKeys: withoutKeys === true,
  }
}

function mistakeIn(file: string | undefined, { mark, last, tombstones, forgetErasures, withoutKeys }: RestoreOptions): string | null {
  if (last !== undefined && !/^\d{1,15}$/.test(last)) return '--last must be a whole number'
  if ((file === undefined) !== (mark === true)) return 'name the file of the backup, or use --mark with PostgreSQL'
  if (tombstones !== undefined && forgetErasures === true) return 'use either --tombstones or --forget-erasures'
  if (mark === true && withoutKeys === true) return '--without-keys belongs to the file of a backup'
  if (mark !== true) return null
  if (last === undefined)
    return '--mark needs --last N, the highest sequence that anybody has seen (`relay-sequence`, or the `after` of a reader of the feed). Somewhat too high does no harm'
  return tombstones === undefined && forgetErasures !== true
    ? '--mark needs --tombstones FILE, or what was erased since would come back. docs/operating.md, "Restore", says how to export the file from the database as it was. If nothing was erased, or it may come back: --forget-erasures'
    : null
}

function reportMark(restore: Awaited<ReturnType<typeof markStore>>, { json }: RestoreOptions): void {
  const { from, to } = restore
  process.stdout.write(
    json === true
      ? `${JSON.stringify({ kind: 'marked', restore })}\n`
      : `The database is marked as restored. Sequences go on after ${to} (the last was ${from}). What was delivered since may come again under new ids.\nStart the relays: they poll for what the carrier pushed since.\n`,
  )
}

/** Names all files of the replaced store: whoever deletes only some of them keeps its data. */
function describeKept({ aside, asideLogs }: Pick<Awaited<ReturnType<typeof restoreStore>>, 'aside' | 'asideLogs'>): string {
  const store = aside === null ? '' : ` The store that was there is now ${aside}.`
  if (asideLogs.length === 0) return store
  return `${store} Its log could not be written into its file and holds data too; delete it with the store: ${asideLogs.join(', ')}.`
}

function report(restored: Awaited<ReturnType<typeof restoreStore>>, { json }: RestoreOptions): void {
  if (json === true) {
    process.stdout.write(`${JSON.stringify(restored)}\n`)
    return
  }
  const kept = describeKept(restored)
  if (restored.kind === 'finished') {
    process.stdout.write(`An earlier restore that was interrupted is now finished; this backup was not used.${kept}\n`)
    return
  }
  const { backup, madeAtMs, from, to, delivered } = restored.restore
  const madeAt = madeAtMs === null ? '' : `, made at ${new Date(madeAtMs).toISOString()}`
  const again =
    delivered === null
      ? 'What was delivered after the backup may come again under new ids.'
      : `${counted(delivered, 'delivery was', 'deliveries were')} accepted after the backup; their events may come again under new ids.`
  process.stdout.write(
    `The store is as it was in the backup "${backup}"${madeAt}.${kept}\n` +
      `Sequences go on after ${to} (the backup's last is ${from}). ${again}\nStart the relay: it polls for what the carrier pushed since.\n`,
  )
  if (restored.erasedSince > 0)
    process.stdout.write(
      `${counted(restored.erasedSince, 'identifier was', 'identifiers were')} erased since the backup: the start erases what the backup holds of them, before the relay serves, and the audit trail says so.\n`,
    )
  if (restored.lostKeys.length > 0)
    process.stdout.write(
      `Nothing is sent to these endpoints until they have a new key, because theirs cannot be opened: ${restored.lostKeys.join(', ')}. Unless secrets.atRestKeys names a key that you still have, list a new one there first.\n`,
    )
  if (restored.otherKeys.length > 0)
    process.stdout.write(
      `These endpoints have another key in the backup than the one that signs now, and their receivers may refuse it: ${restored.otherKeys.join(', ')}. Give them a new key.\n`,
    )
}
