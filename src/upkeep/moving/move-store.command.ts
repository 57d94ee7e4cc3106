import { Command, Option } from 'commander'
import { addRelayOptions, type ClientOptions, openRelay } from '../../console/cli/asking/ask-relay.ts'
import { asOwnerOfStore, readStoreSettings } from '../../console/cli/asking/config-file.ts'
import { fail, failUsage } from '../../console/cli/exit-codes.ts'
import { runJob, type StepNames } from '../jobs/follow-job.ts'
import type { LoadServerStores } from '../stores-on-servers.ts'

interface MoveOptions extends ClientOptions {
  readonly to?: string
  readonly undo?: boolean
  readonly config: string
}

const STEPS: StepNames = {
  copying: ['copying', 'rows'],
  catching_up: ['copying what changed meanwhile', 'rows'],
  verifying: ['comparing all rows', 'rows'],
  waiting: ['ready to switch', 'rows'],
  switching: ['switching', 'rows'],
}

/** `move-store`: moves the store of a running relay to another file or database. */
export function moveStoreCommand(loadServer: LoadServerStores): Command {
  const command = new Command('move-store')
    .description('move the store of a running relay to another file or database, while it goes on receiving and serving')
    .addOption(
      new Option('--to <store>', 'an empty database (postgres://...) or a new file (sqlite:PATH, as the relay sees it)').env(
        'RELAY_MOVE_TO',
      ),
    )
    .option('--undo', 'put a moved store back into use as it was at the move; stop the relay first')
    .option('--config <file>', 'with --undo: the config file that names the store', 'config/relay.yaml')
    .action(async (options: MoveOptions) => {
      if ((options.to === undefined) === (options.undo !== true)) {
        failUsage('move-store: name the new store with --to, or use --undo')
      } else if (options.to === undefined) await undo(options, loadServer)
      else await moveTo(options.to, options)
    })
  return addRelayOptions(command)
}

async function undo({ config }: MoveOptions, loadServer: LoadServerStores): Promise<void> {
  const settings = await readStoreSettings(config)
  if (settings === null) return
  const { undoMove } = await import('./store-in-use.ts')
  const server = await loadServer()
  const undone = await asOwnerOfStore(settings, () => undoMove(settings, server))
  if (undone.kind === 'not_moved') return fail(`the store that ${config} names was not moved`)
  const { store } = undone
  if (undone.kind === 'in_use')
    return fail(`a relay works on ${store} (${undone.usedBy}). What it accepts would be lost: stop it first. Nothing was changed.`)
  const { unverified } = undone
  const whether =
    unverified === null
      ? ', which nothing uses now.'
      : `. It is not known whether a relay uses that store: ${unverified}. If one does, stop it, because what it accepts would be lost.`
  process.stdout.write(
    `The store is in use again, as it was at ${new Date(undone.atMs).toISOString()}. Everything that came since then is only in ${store}${whether}\n`,
  )
}

async function moveTo(to: string, options: MoveOptions): Promise<void> {
  const ask = await openRelay(options)
  const asked = { path: '/relay/store/move', body: { to }, steps: STEPS, cancelled: 'cancelled: the relay goes on with the store it had' }
  const job = await runJob(ask, asked, options)
  if (job?.kind === 'move')
    process.stdout.write(
      `${job.result?.count} rows were moved to ${job.task.to}, and the relay works there now.\nName it in \`store\` of the config file: until then the relay opens the new store at every start all the same, and says so in its log.\n`,
    )
}
