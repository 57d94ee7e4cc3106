import type { Command, CommanderError } from 'commander'

/** 0 ok, 1 failed, 2 usage: the same for every command. */
export const EXIT = { ok: 0, failed: 1, usage: 2 } as const

/** Makes a command and its subcommands exit with 2 when they are called wrongly; help that was asked for is no error. */
export function withExitCodes(command: Command): Command {
  command.exitOverride((error: CommanderError) => process.exit(error.exitCode === 0 ? EXIT.ok : EXIT.usage))
  command.commands.forEach(withExitCodes)
  return command
}

/** Ends a command that could not do what it was asked to. */
export function fail(message: string): void {
  process.stderr.write(`${message}\n`)
  process.exitCode = EXIT.failed
}
