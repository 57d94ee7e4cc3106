import { Command } from 'commander'
import { asOwnerOfStore, readStoreSettings } from '../../console/cli/asking/config-file.ts'
import { fail } from '../../console/cli/exit-codes.ts'
import { counted } from '../../core/domain/amounts.ts'
import { describeFailure } from '../../core/domain/system-reason.ts'
import type { LoadServerStores } from '../stores-on-servers.ts'
import type { LostTombstones } from './lost-tombstones.ts'

/** `secrets give-up-tombstones`: forgets what was erased in the store of a stopped relay. */
export function giveUpTombstonesCommand(loadServer: LoadServerStores): Command {
  return new Command('give-up-tombstones')
    .description(
      'with the relay stopped: forget what was erased, because the key of the tombstones is lost for good; without --yes only says what follows',
    )
    .option('--config <file>', 'the config file that names the store', 'config/relay.yaml')
    .option('--yes', 'give them up; without it nothing is changed')
    .option('--json', 'print JSON')
    .action(async ({ config: file, yes, json }: { readonly config: string; readonly yes?: boolean; readonly json?: boolean }) => {
      const config = await readStoreSettings(file)
      if (config === null) return
      const { giveUpTombstones } = await import('./lost-tombstones.ts')
      const server = await loadServer()
      try {
        const lost = await asOwnerOfStore(config, () => giveUpTombstones(config, { isConfirmed: yes === true }, server))
        if (json === true) process.stdout.write(`${JSON.stringify(lost)}\n`)
        else process.stdout.write(describeGivenUp(lost))
      } catch (error) {
        fail(describeFailure(error))
      }
    })
}

function describeGivenUp({ givenUp, where, aside }: LostTombstones): string {
  if (givenUp === null)
    return (
      `No key decrypts the key of the tombstones. First look for a copy of ${where}: a backup of the file, or NAME.key beside a backup.\n` +
      'Without the tombstones nobody can tell any more what was erased: a push, an answer of the carrier or a restored backup that names it makes a parcel of it again, ' +
      'until you erase it again.\nNothing was changed. Say --yes to give them up.\n'
    )
  const kept = aside === null ? '' : ` Their file is now ${aside}.`
  return `${counted(givenUp, 'tombstone is', 'tombstones are')} given up.${kept} Start the relay, and erase again what must not come back.\n`
}
