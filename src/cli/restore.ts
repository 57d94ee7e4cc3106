import { Command } from 'commander'
import { markStore, restoreStore } from '../wiring/backups/restore.ts'
import { readConfig } from './config/config-file.ts'
import { EXIT, fail } from './exit-codes.ts'

interface RestoreOptions {
  readonly config: string
  readonly yes?: boolean
  readonly mark?: boolean
  readonly last?: string
  readonly tombstones?: string
  readonly forgetErasures?: boolean
  readonly json?: boolean
}

/** `restore`: replaces the store of a stopped relay with a backup. */
export function restoreCommand(): Command {
  return new Command('restore')
    .description('restore a backup as the store, with the relay stopped; the store that was there is kept under another name')
    .argument('[file]', 'the backup: NAME.db, with NAME.key beside it if the relay made that')
    .option('--mark', 'mark a PostgreSQL database as restored, after the server’s own tools have restored it; needs --last')
    .option('--config <file>', 'the config file that names the store', 'config/relay.yaml')
    .option('--yes', 'replace a store that is newer than the backup')
    .option('--last <sequence>', 'the highest sequence that anybody has seen, if the store is gone or cannot be read')
    .option('--tombstones <file>', 'a copy of NAME.db.tombstones, which says what was erased, if it is not beside the store')
    .option('--forget-erasures', 'restore although nobody knows what was erased since the backup')
    .option('--json', 'print JSON')
    .action(restore)
}

async function restore(file: string | undefined, options: RestoreOptions): Promise<void> {
  const last = options.last === undefined ? null : Number(options.last)
  const mistake = mistakeIn(file, options)
  if (mistake !== null) {
    process.stderr.write(`restore: ${mistake}\n`)
    process.exitCode = EXIT.usage
    return
  }
  const config = await readConfig(options.config)
  if (config === null) return
  const step = (text: string) => void process.stderr.write(`${text}\n`)
  try {
    if (file === undefined) reportMark(await markStore(config, last ?? 0), options)
    else report(await restoreStore(config, orderOf(file, last, options), step), options)
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error))
  }
}

function orderOf(
  file: string,
  last: number | null,
  { yes, tombstones, forgetErasures }: RestoreOptions,
): Parameters<typeof restoreStore>[1] {
  return { file, last, isConfirmed: yes === true, tombstones: tombstones ?? null, forgetsErasures: forgetErasures === true }
}

function mistakeIn(file: string | undefined, { mark, last }: RestoreOptions): string | null {
  if (last !== undefined && !/^\d{1,15}$/.test(last)) return '--last must be a whole number'
  if ((file === undefined) !== (mark === true)) return 'name the file of the backup, or use --mark with PostgreSQL'
  return mark === true && last === undefined
    ? '--mark needs --last N, the highest sequence that anybody has seen (`relay-sequence`, or the `after` of a reader of the feed). Too high does no harm'
    : null
}

function reportMark(restore: Awaited<ReturnType<typeof markStore>>, { json }: RestoreOptions): void {
  const { from, to } = restore
  process.stdout.write(
    json === true
      ? `${JSON.stringify({ kind: 'marked', restore })}\n`
      : `The database is marked as restored. Sequences go on after ${to} (it had come to ${from}). What was delivered since may come again under new ids.\nStart the relays: they poll for what the carrier pushed since.\n`,
  )
}

function report(restored: Awaited<ReturnType<typeof restoreStore>>, { json }: RestoreOptions): void {
  if (json === true) {
    process.stdout.write(`${JSON.stringify(restored)}\n`)
    return
  }
  const kept = restored.aside === null ? '' : ` The store that was there is now ${restored.aside}.`
  if (restored.kind === 'finished') {
    process.stdout.write(`A restore that was interrupted is finished; this backup was not looked at.${kept}\n`)
    return
  }
  const { backup, madeAtMs, from, to, delivered } = restored.restore
  const madeAt = madeAtMs === null ? '' : `, made at ${new Date(madeAtMs).toISOString()}`
  const again =
    delivered === null
      ? 'What was delivered after the backup may come again under new ids.'
      : `${delivered} deliveries were accepted after the backup; what they told may come again under new ids.`
  process.stdout.write(
    `The store is as it was in the backup "${backup}"${madeAt}.${kept}\n` +
      `Sequences go on after ${to} (the backup's last is ${from}). ${again}\nStart the relay: it polls for what the carrier pushed since.\n`,
  )
  if (restored.otherKeys.length > 0)
    process.stdout.write(
      `These endpoints have another key in the backup than they are sent with now, and their receivers may refuse it: ${restored.otherKeys.join(', ')}. Give them a new key.\n`,
    )
}
