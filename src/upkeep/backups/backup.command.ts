import { Command } from 'commander'
import { addRelayOptions, type ClientOptions, openRelay, order } from '../../console/cli/asking/ask-relay.ts'
import { fail } from '../../console/cli/exit-codes.ts'
import { countText } from '../../core/domain/amounts.ts'
import { describeFailure } from '../../core/domain/system-reason.ts'
import { runJob, type StepNames } from '../jobs/follow-job.ts'
import type { BackupsAnswer } from './backups.routes.ts'

const STEPS: StepNames = {
  copying: ['copying the store', 'pages'],
  verifying: ['checking the copy', 'tables'],
  placing: ['putting the copy into its folder', 'bytes'],
}

/** `backup`: backs up the store of a relay while it runs. */
export function backupCommand(): Command {
  const command = new Command('backup')
    .description('back up the store of a running relay into backup.directory, while it goes on')
    .argument('<name>', 'the name of the backup, such as before-upgrade; with --verify its file')
    .option('--verify', 'check the file of a backup: that no byte has changed since it was made; no relay is asked')
    .action((name: string, options: ClientOptions & { readonly verify?: boolean }) =>
      options.verify === true ? verify(name, options) : backup(name, options),
    )
  return addRelayOptions(command)
}

/** Runs the checks that a restore makes before it changes anything. */
async function verify(file: string, { json }: ClientOptions): Promise<void> {
  const { inspectBackup } = await import('../restore/inspect-stores.ts')
  try {
    const { manifest } = inspectBackup(file)
    const { name, relayId, madeAtMs, version, sequence, isDigested = false } = manifest
    const madeAt = new Date(madeAtMs).toISOString()
    const proof = isDigested ? 'no byte has changed since it was made' : 'its tables are whole; it was made without a digest'
    if (json === true) process.stdout.write(`${JSON.stringify({ file, name, relayId, madeAt, version, sequence, isDigested })}\n`)
    else process.stdout.write(`${file}: ${proof}. "${name}", made at ${madeAt} by relay ${relayId}, up to sequence ${sequence}.\n`)
  } catch (error) {
    fail(describeFailure(error))
  }
}

async function backup(name: string, options: ClientOptions): Promise<void> {
  const ask = await openRelay(options)
  const asked = { path: '/relay/backups', body: { name }, steps: STEPS, cancelled: 'cancelled: nothing was kept' }
  if ((await runJob(ask, asked, options)) === null) return
  const { directory, last } = await order<BackupsAnswer>(ask, 'GET', '/relay/backups')
  process.stdout.write(`${directory ?? ''}/${name}.db: ${countText(last?.bytes ?? 0)} bytes, checked and complete.\n`)
}
