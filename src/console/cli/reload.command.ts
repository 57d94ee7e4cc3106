import { Command } from 'commander'
import type { ReloadAnswer, ResealAnswer, RotatedAnswer } from '../api/reload.routes.ts'
import { asking, type ClientOptions, describeProblem, order, print } from './asking/ask-relay.ts'
import { fail } from './exit-codes.ts'
import { plain } from './terminal.ts'

/** `reload`: makes a running relay read its config again. */
export function reloadCommand(): Command {
  const command = new Command('reload').description(
    'make the relay (the replica that answers) read its config again, and say what changed or what is wrong',
  )
  return asking(command, async (ask, options: ClientOptions) => {
    const answer = await ask<ReloadAnswer>('POST', '/relay/reload')
    if (options.json === true) process.stdout.write(`${JSON.stringify(answer.body)}\n`)
    const problems = linesOf(answer.body.problems)
    if (!answer.ok) return fail([describeProblem(answer), ...problems].join('\n'))
    if (options.json !== true) process.stdout.write(describe(answer.body))
    if (problems.length > 0) fail(['These files could not be used; their earlier content stays in use:', ...problems].join('\n'))
  })
}

function describe({ replica, changed, needsRestart }: ReloadAnswer): string {
  const head =
    changed.length === 0
      ? `${replica}: nothing has changed. A secret from a variable of the environment changes only by a restart.`
      : `${replica}: in effect now:`
  const restart = needsRestart.length === 0 ? [] : ['These have changed too, and need a restart:', ...linesOf(needsRestart)]
  return `${[head, ...linesOf(changed), ...restart].join('\n')}\n`
}

/** A problem with the config has several lines of text, because it quotes the lines of the file. */
function linesOf(texts: readonly string[] = []): readonly string[] {
  return texts.flatMap((text) => text.split('\n')).map((line) => `  ${plain(line)}`)
}

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
