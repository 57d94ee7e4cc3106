import { Command } from 'commander'
import { VERSION } from '../package-files.ts'
import { EXIT, withExitCodes } from './exit-codes.ts'

/** Loads a command only when it is run, so that `serve` does not wait for the libraries of others. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./serve.ts')).serveCommand(),
  demo: async () => (await import('./demo.ts')).demoCommand(),
  sandbox: async () => (await import('./sandbox.ts')).sandboxCommand(),
  watch: async () => (await import('./watch.ts')).watchCommand(),
  forget: async () => (await import('./forget.ts')).forgetCommand(),
  refresh: async () => (await import('./refresh.ts')).refreshCommand(),
  inbox: async () => (await import('./inbox.ts')).inboxCommand(),
  history: async () => (await import('./history.ts')).historyCommand(),
  rebuild: async () => (await import('./rebuild.ts')).rebuildCommand(),
  'move-store': async () => (await import('./move-store.ts')).moveStoreCommand(),
  check: async () => (await import('./check.ts')).checkCommand(),
  verify: async () => (await import('./verify.ts')).verifyCommand(),
  restore: async () => (await import('./restore.ts')).restoreCommand(),
  prune: async () => (await import('./prune.ts')).pruneCommand(),
  backup: async () => (await import('./backup.ts')).backupCommand(),
  config: async () => (await import('./config.ts')).configCommand(),
  'hash-password': async () => (await import('./hash-password.ts')).hashPasswordCommand(),
  secrets: async () => (await import('./secrets.ts')).secretsCommand(),
  'generate-key': async () => (await import('./generate-key.ts')).generateKeyCommand(),
}

/** Runs the command named on the command line. */
export async function runProgram(): Promise<void> {
  const asked = process.argv[2] ?? ''
  const wanted = Object.hasOwn(COMMANDS, asked) ? [asked] : Object.keys(COMMANDS)
  const program = new Command('parcel-relay')
    .description("Receives, polls, merges, serves and relays a carrier's parcel status.")
    .version(VERSION, '--version', 'print the version')
  for (const name of wanted) {
    const command = await COMMANDS[name]?.()
    if (command !== undefined) program.addCommand(command)
  }
  try {
    await withExitCodes(program).parseAsync()
  } catch (error) {
    process.stderr.write(`parcel-relay: ${error instanceof Error ? error.message : String(error)}\n`)
    // A start that failed may have left a thread that never ends.
    const { endProcess } = await import('../runtime/end-process.ts')
    await endProcess(EXIT.failed)
  }
}
