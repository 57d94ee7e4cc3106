import { Command } from 'commander'
import { addRelayOptions, type ClientOptions, openRelay, order, print } from '../../console/cli/asking/ask-relay.ts'
import { asOwnerOfStore, readStoreSettings } from '../../console/cli/asking/config-file.ts'
import { fail, failUsage } from '../../console/cli/exit-codes.ts'
import { countText } from '../../core/domain/amounts.ts'
import { runJob } from '../jobs/follow-job.ts'
import type { RetentionAnswer } from './retention.routes.ts'
import { RETENTION_TITLES } from './retention.rules.ts'

interface PruneOptions extends ClientOptions {
  readonly dryRun?: boolean
  readonly compact?: boolean
  readonly config: string
}

/** `prune`: makes a running relay remove data that is older than `retention`. With `--compact`, shrinks a stopped relay's store. */
export function pruneCommand(): Command {
  const command = new Command('prune')
    .description('remove now what is older than `retention` says, as the relay does every hour')
    .option('--dry-run', 'only say what would go')
    .option(
      '--compact',
      'return the free space of the store (SQLite) to the disk, and remove leftovers of erased data; stop the relay first',
    )
    .option('--config <file>', 'with --compact: the config file that names the store', 'config/relay.yaml')
    .action(async (options: PruneOptions) => {
      if (options.compact === true && options.dryRun === true) {
        failUsage('prune: --compact has no --dry-run')
      } else if (options.compact === true) await compact(options)
      else if (options.dryRun === true) await dryRun(options)
      else await prune(options)
    })
  return addRelayOptions(command)
}

async function dryRun(options: PruneOptions): Promise<void> {
  const ask = await openRelay(options)
  const answer = await order<Pick<RetentionAnswer, 'wouldGo'>>(ask, 'POST', '/relay/retention?dryRun=true')
  print(options, answer, describeCounts('Would go now:', answer.wouldGo))
}

async function prune(options: PruneOptions): Promise<void> {
  const ask = await openRelay(options)
  const asked = { path: '/relay/retention', steps: {}, cancelled: 'cancelled: the hourly pass will remove the rest' }
  if ((await runJob(ask, asked, options)) === null) return
  const { last } = await order<RetentionAnswer>(ask, 'GET', '/relay/retention')
  const removed = Object.entries(last?.removed ?? {}).map(([stage, count]) => [stage, { count, isMore: false }] as const)
  process.stdout.write(describeCounts('Removed:', Object.fromEntries(removed)))
}

/** Returns a line for each kind of data with a count above 0, in the order in which the relay removes them. */
function describeCounts(title: string, counts: RetentionAnswer['wouldGo']): string {
  const found = Object.entries(counts).filter(([, { count }]) => count > 0)
  if (found.length === 0) return 'Nothing to remove.\n'
  const rows = found.map(([stage, { count, isMore }]) => ({
    words: titleOf(stage),
    count: countText(count),
    note: isMore ? ' or more' : '',
  }))
  const widthOf = (column: 'words' | 'count') => Math.max(...rows.map((row) => row[column].length))
  const [wide, narrow] = [widthOf('words'), widthOf('count')]
  const lines = rows.map((row) => `  ${row.words.padEnd(wide)}  ${row.count.padStart(narrow)}${row.note}`)
  return `${[title, ...lines].join('\n')}\n`
}

/** Returns the title of a kind of data. A newer relay may have kinds that this command does not know; their name is their title. */
function titleOf(stage: string): string {
  return new Map<string, string>(Object.entries(RETENTION_TITLES)).get(stage) ?? stage
}

async function compact({ config, json }: PruneOptions): Promise<void> {
  const settings = await readStoreSettings(config)
  if (settings === null) return
  if (settings.store.engine !== 'sqlite')
    return fail('the store is on PostgreSQL, which uses free space again by itself. To return it to the disk, run VACUUM FULL there')
  const { compactStore } = await import('./compact.ts')
  const { path } = settings.store
  const done = await asOwnerOfStore(settings, () => compactStore(path))
  if (done.kind === 'no_room')
    return fail(
      `it needs ${countText(done.neededBytes)} bytes of free space beside ${settings.store.path}, and there are ${countText(done.freeBytes)}. Nothing was changed`,
    )
  if (json === true) process.stdout.write(`${JSON.stringify({ before: done.beforeBytes, after: done.afterBytes })}\n`)
  else process.stdout.write(`${settings.store.path} had ${countText(done.beforeBytes)} bytes, and has ${countText(done.afterBytes)} now.\n`)
}
