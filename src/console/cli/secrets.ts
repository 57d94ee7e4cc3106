import { Command } from 'commander'
import type { ResealAnswer, RotatedAnswer } from '../api/reload.routes.ts'
import { asking, type ClientOptions, order, print } from './asking/ask-relay.ts'
import { fail } from './exit-codes.ts'

/** `secrets`: replaces the relay's own keys, through a running relay. */
export function secretsCommand(): Command {
  return new Command('secrets').description("replace the relay's own keys").addCommand(resealCommand()).addCommand(rotateTokensCommand())
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
