import { Command } from 'commander'
import { addRelayOptions, type ClientOptions, describeProblem, listOf, memberOf, openRelay, textOf } from '../asking/ask-relay.ts'
import { fail } from '../exit-codes.ts'

/** `secrets`: replaces the relay's own keys, through a running relay. */
export function secretsCommand(): Command {
  return new Command('secrets')
    .description("replace the relay's own keys, through a running relay")
    .addCommand(resealCommand())
    .addCommand(rotateTokensCommand())
}

function resealCommand(): Command {
  const command = new Command('reseal')
    .description('encrypt all secrets in the store with the first key of secrets.atRestKeys, so that the others can go')
    .action(async (options: ClientOptions) => {
      const ask = await openRelay(options)
      const answer = await ask('POST', '/relay/secrets/reseal')
      if (answer.status !== 200) return fail(describeProblem(answer))
      const unreadable = listOf(answer.body, 'unreadable')
      const [resealed, upToDate] = ['resealed', 'upToDate'].map((name) => Number(memberOf(answer.body, name)))
      if (options.json === true) process.stdout.write(`${JSON.stringify(answer.body)}\n`)
      else process.stdout.write(`Encrypted with the key ${textOf(answer.body, 'key') ?? ''}: ${resealed} now, ${upToDate} before.\n`)
      if (unreadable.length > 0) fail(`no key opens ${unreadable.join(', ')}: restore the key, or give a new one`)
    })
  return addRelayOptions(command)
}

function rotateTokensCommand(): Command {
  const command = new Command('rotate-tokens')
    .description('replace the key that signs tokens; existing tokens stay valid until they expire')
    .option('--now', 'end all tokens now: apps and people must log in again')
    .action(async (options: ClientOptions & { readonly now?: boolean }) => {
      const ask = await openRelay(options)
      const text = JSON.stringify(options.now === true ? { at: 'now' } : {})
      const answer = await ask('POST', '/relay/secrets/rotate-tokens', { type: 'application/json', text })
      if (answer.status !== 200) return fail(describeProblem(answer))
      const until = textOf(answer.body, 'validUntil')
      if (options.json === true) process.stdout.write(`${JSON.stringify(answer.body)}\n`)
      else
        process.stdout.write(
          until === null
            ? 'The key is replaced. All tokens have ended.\n'
            : `The key is replaced. The last old token expires at ${until}.\n`,
        )
    })
  return addRelayOptions(command)
}
