import type { Command, CommanderError } from 'commander'
import { describeFailure } from '../../core/domain/system-reason.ts'

/** The exit codes of all commands: 0 success, 1 failure, 2 usage error. */
export const EXIT = { ok: 0, failed: 1, usage: 2 } as const

/** Makes a command and its subcommands exit with 2 on a usage error, but with 0 after `--help`. */
export function withExitCodes(command: Command): Command {
  command.exitOverride((error: CommanderError) => {
    if (process.stdout.errored !== null) endUnwritten(process.stdout.errored)
    return process.exit(error.exitCode === 0 ? EXIT.ok : EXIT.usage)
  })
  command.commands.forEach(withExitCodes)
  return command
}

/** Ends the process once its output cannot be written: with success if nobody reads any further, as behind `| head`. */
export function endUnwritten(error: NodeJS.ErrnoException): never {
  if (error.code === 'EPIPE') return process.exit(EXIT.ok)
  process.stderr.write(`parcel-relay: the output cannot be written: ${describeFailure(error)}\n`)
  return process.exit(EXIT.failed)
}

/** Ends a command, which prints only the message. */
export class CommandFailure extends Error {}

export function fail(message: string): void {
  process.stderr.write(`${message}\n`)
  process.exitCode = EXIT.failed
}

/** Reports a usage error that commander does not detect by itself, and sets the exit code. */
export function failUsage(message: string): void {
  process.stderr.write(`${message}\n`)
  process.exitCode = EXIT.usage
}

/** Signals within this time count as one signal, because Ctrl-C under npm arrives twice. */
const ONE_SIGNAL_MS = 1000

/** Resolves with the first SIGTERM or SIGINT. A second signal more than `ONE_SIGNAL_MS` later calls `endNow`, by default an exit with 1. */
export function untilSignalled(endNow: () => void = () => process.exit(1)): Promise<string> {
  return new Promise((resolve) => {
    let firstAtMs: number | null = null
    const onSignal = (signal: string) => {
      if (firstAtMs === null) {
        firstAtMs = performance.now()
        resolve(signal)
      } else if (performance.now() - firstAtMs > ONE_SIGNAL_MS) endNow()
    }
    process.on('SIGTERM', onSignal)
    process.on('SIGINT', onSignal)
  })
}
