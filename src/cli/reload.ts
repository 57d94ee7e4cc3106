import { Command } from 'commander'
import { addRelayOptions, type ClientOptions, describeProblem, listOf, openRelay, textOf } from './asking/ask-relay.ts'
import { fail } from './exit-codes.ts'
import { plain } from './terminal/table.ts'

/** `reload`: makes a running relay read its config again. */
export function reloadCommand(): Command {
  const command = new Command('reload')
    .description('make the relay (the replica that answers) read its config again, and say what changed or what is wrong')
    .action(async (options: ClientOptions) => {
      const ask = await openRelay(options)
      const answer = await ask('POST', '/relay/reload')
      if (options.json === true) process.stdout.write(`${JSON.stringify(answer.body)}\n`)
      if (answer.status !== 200) return fail([describeProblem(answer), ...listed(answer.body, 'problems')].join('\n'))
      if (options.json !== true) process.stdout.write(describe(answer.body))
      const problems = listed(answer.body, 'problems')
      if (problems.length > 0) fail(['These files could not be used; their earlier content stays in use:', ...problems].join('\n'))
    })
  return addRelayOptions(command)
}

function describe(body: unknown): string {
  const changed = listed(body, 'changed')
  const needsRestart = listed(body, 'needsRestart')
  const replica = textOf(body, 'replica') ?? ''
  const head =
    changed.length === 0
      ? `${replica}: nothing has changed. A secret from a variable of the environment changes only by a restart.`
      : `${replica}: in effect now:`
  const restart = needsRestart.length === 0 ? [] : ['These have changed too, and need a restart:', ...needsRestart]
  return `${[head, ...changed, ...restart].join('\n')}\n`
}

function listed(body: unknown, name: string): readonly string[] {
  // A problem with the config has several lines of text, because it quotes the lines of the file.
  return listOf(body, name)
    .flatMap((one) => String(one).split('\n'))
    .map((line) => `  ${plain(line)}`)
}
