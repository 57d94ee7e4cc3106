#!/usr/bin/env node
import { Command } from 'commander'
import { EXIT, withExitCodes } from './cli/exit-codes.ts'

/** Each in a file of its own, loaded when it is asked for: the relay need not wait for the demo's libraries to start. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./cli/serve.ts')).serveCommand(),
  demo: async () => (await import('./cli/demo.ts')).demoCommand(),
  sandbox: async () => (await import('./cli/sandbox.ts')).sandboxCommand(),
  watch: async () => (await import('./cli/watch.ts')).watchCommand(),
  refresh: async () => (await import('./cli/refresh.ts')).refreshCommand(),
  history: async () => (await import('./cli/history.ts')).historyCommand(),
  config: async () => (await import('./cli/config-print.ts')).configCommand(),
  'hash-password': async () => (await import('./cli/hash-password.ts')).hashPasswordCommand(),
  'generate-key': async () => (await import('./cli/generate-key.ts')).generateKeyCommand(),
}

const asked = process.argv[2] ?? ''
const wanted = Object.hasOwn(COMMANDS, asked) ? [asked] : Object.keys(COMMANDS)
const program = new Command('parcel-relay').description("Receives, polls, merges, serves and relays a carrier's parcel status.")
for (const name of wanted) {
  const command = await COMMANDS[name]?.()
  if (command !== undefined) program.addCommand(command)
}

try {
  await withExitCodes(program).parseAsync()
} catch (error) {
  process.stderr.write(`parcel-relay: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(EXIT.failed)
}
