import { Command } from 'commander'
import { describeFailure } from '../../core/domain/system-reason.ts'
import { VERSION } from '../../package-files.ts'
import { CommandFailure, EXIT, endUnwritten, withExitCodes } from './exit-codes.ts'
import { addExamples } from './help/examples.ts'

/** Each function imports the code of its command. Only the command that runs is imported, so that `serve` does not wait for other libraries. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./serve.ts')).serveCommand(),
  demo: async () => (await import('../../trial/demo.command.ts')).demoCommand(),
  sandbox: async () => (await import('../../trial/sandbox.command.ts')).sandboxCommand(),
  status: async () => (await import('./status.ts')).statusCommand(),
  check: async () => (await import('../../upkeep/check/check.command.ts')).checkCommand(),
  parcels: async () => (await import('./parcels.ts')).parcelsCommand(),
  history: async () => (await import('./history.ts')).historyCommand(),
  watch: async () => (await import('./watch.ts')).watchCommand(),
  refresh: async () => (await import('./refresh.ts')).refreshCommand(),
  forget: async () => (await import('../../upkeep/erasure/forget.command.ts')).forgetCommand(),
  endpoints: async () => (await import('./endpoints.ts')).endpointsCommand(),
  deliveries: async () => (await import('./deliveries.ts')).deliveriesCommand(),
  retry: async () => (await import('./deliveries/retry.ts')).retryCommand(),
  replay: async () => (await import('./deliveries/replay.ts')).replayCommand(),
  inbox: async () => (await import('./inbox.ts')).inboxCommand(),
  tail: async () => (await import('./tail.ts')).tailCommand(),
  reload: async () => (await import('./reload.ts')).reloadCommand(),
  rebuild: async () => (await import('../../upkeep/rebuild/rebuild.command.ts')).rebuildCommand(),
  'move-store': async () => (await import('../../upkeep/moving/move-store.command.ts')).moveStoreCommand(),
  verify: async () => (await import('./verify.ts')).verifyCommand(),
  fingerprint: async () => (await import('../../upkeep/secrets/fingerprint.command.ts')).fingerprintCommand(),
  restore: async () => (await import('../../upkeep/restore/restore.command.ts')).restoreCommand(),
  prune: async () => (await import('../../upkeep/retention/prune.command.ts')).pruneCommand(),
  backup: async () => (await import('../../upkeep/backups/backup.command.ts')).backupCommand(),
  config: async () => (await import('./config.ts')).configCommand(),
  'hash-password': async () => (await import('./hash-password.ts')).hashPasswordCommand(),
  operator: async () => (await import('./operator.ts')).operatorCommand(),
  secrets: async () => (await import('../../upkeep/secrets/secrets.command.ts')).secretsCommand(),
  'generate-key': async () => (await import('./generate-key.ts')).generateKeyCommand(),
  completion: async () => (await import('./completion.ts')).completionCommand(() => createProgram()),
}

/** Creates the program with these commands; by default with all commands. */
export async function createProgram(names: readonly string[] = Object.keys(COMMANDS)): Promise<Command> {
  const program = new Command('parcel-relay')
    .description("Receives, polls, merges, serves and relays a carrier's parcel status.")
    .version(VERSION, '--version', 'print the version')
  for (const name of names) {
    const command = await COMMANDS[name]?.()
    if (command !== undefined) program.addCommand(command)
  }
  addExamples(program)
  return withExitCodes(program)
}

export async function runProgram(): Promise<void> {
  const asked = process.argv[2] ?? ''
  // A relay goes on without its log.
  if (asked !== 'serve') process.stdout.on('error', endUnwritten)
  const needed = Object.hasOwn(COMMANDS, asked) ? [asked] : asked === '--version' ? [] : undefined
  const program = await createProgram(needed)
  try {
    await program.parseAsync()
  } catch (error) {
    process.stderr.write(error instanceof CommandFailure ? `${error.message}\n` : `parcel-relay: ${describeFailure(error)}\n`)
    // A failed start may leave a thread that never ends, so end the process.
    const { endProcess } = await import('../../core/runtime/end-process.ts')
    await endProcess(EXIT.failed)
  }
}
