import { Argument, Command } from 'commander'
import { withExitCodes } from './exit-codes.ts'
import { type Completable, SHELLS, type Shell, scriptFor } from './help/completion-scripts.ts'
import { commandsWithin } from './help/examples.ts'

/** `completion`: prints a script by which a shell completes commands and options. */
export function completionCommand(createProgram: () => Promise<Command>): Command {
  const command = new Command('completion')
    .description('print the script that makes a shell complete commands and options')
    .addArgument(new Argument('<shell>').choices(Object.keys(SHELLS)))
    .action(async (shell: Shell) => {
      const commands = commandsWithin(await createProgram()).map(completableOf)
      process.stdout.write(scriptFor(shell, commands))
    })
  return withExitCodes(command)
}

function completableOf({ path, command }: { readonly path: string; readonly command: Command }): Completable {
  return {
    path,
    about: command.description(),
    words: command.commands.map((one) => one.name()),
    values: command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
    options: command.options
      .filter(({ hidden, long }) => !hidden && typeof long === 'string')
      .map(({ long, description, argChoices, flags }) => ({
        name: long ?? '',
        about: description,
        takesValue: /[<[]/.test(flags),
        values: argChoices ?? [],
      })),
  }
}
