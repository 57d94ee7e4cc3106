import { Command } from 'commander'
import { counted } from '../../core/domain/amounts.ts'
import { describeFailure } from '../../core/domain/system-reason.ts'
import { asOwnerOfStore } from '../../server/replicas/hand-over.command.ts'
import type { LostTombstones } from '../../upkeep/erasure/lost-tombstones.ts'
import type { ResealAnswer, RotatedAnswer } from '../api/reload.routes.ts'
import { asking, type ClientOptions, order, print } from './asking/ask-relay.ts'
import { readStoreSettings } from './asking/config-file.ts'
import { fail } from './exit-codes.ts'

/** `secrets`: replaces the relay's own keys, through a running relay. */
export function secretsCommand(): Command {
  return new Command('secrets')
    .description("replace the relay's own keys")
    .addCommand(resealCommand())
    .addCommand(rotateTokensCommand())
    .addCommand(giveUpCommand())
}

function giveUpCommand(): Command {
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
      const { giveUpTombstones } = await import('../../upkeep/erasure/lost-tombstones.ts')
      try {
        const lost = await asOwnerOfStore(config, () => giveUpTombstones(config, { isConfirmed: yes === true }))
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

function resealCommand(): Command {
  const command = new Command('reseal').description(
    'encrypt all secrets in the store with the first key of secrets.atRestKeys, so that the others can go',
  )
  return asking(command, async (ask, options: ClientOptions) => {
    const answer = await order<ResealAnswer>(ask, 'POST', '/relay/secrets/reseal')
    const { key, resealed, upToDate, unreadable } = answer
    print(options, answer, `Encrypted with the key ${key}: ${resealed} now, ${upToDate} before.\n`)
    if (unreadable.length > 0) fail(`no key opens ${unreadable.join(', ')}: restore the key, or give a new one`)
  })
}

function rotateTokensCommand(): Command {
  const command = new Command('rotate-tokens')
    .description('replace the key that signs tokens; existing tokens stay valid until they expire')
    .option('--now', 'end all tokens now: apps and people must log in again')
  return asking(command, async (ask, options: ClientOptions & { readonly now?: boolean }) => {
    const answer = await order<RotatedAnswer>(ask, 'POST', '/relay/secrets/rotate-tokens', options.now === true ? { at: 'now' } : {})
    const { validUntil } = answer
    const ends = validUntil === null ? 'All tokens have ended' : `The last old token expires at ${validUntil}`
    print(options, answer, `The key is replaced. ${ends}.\n`)
  })
}
