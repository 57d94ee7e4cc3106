import type { Command, CommanderError } from 'commander'

/** The exit codes of all commands: 0 success, 1 failure, 2 usage error. */
export const EXIT = { ok: 0, failed: 1, usage: 2 } as const

/** Makes a command and its subcommands exit with 2 on a usage error, but with 0 after `--help`. */
export function withExitCodes(command: Command): Command {
  command.exitOverride((error: CommanderError) => process.exit(error.exitCode === 0 ? EXIT.ok : EXIT.usage))
  command.commands.forEach(withExitCodes)
  return command
}

export function fail(message: string): void {
  process.stderr.write(`${message}\n`)
  process.exitCode = EXIT.failed
}

/** Reports a usage error that commander does not detect by itself, and sets the exit code. */
export function failUsage(message: string): void {
  process.stderr.write(`${message}\n`)
  process.exitCode = EXIT.usage
}
