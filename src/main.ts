#!/usr/bin/env node
import { Command } from 'commander'
import { configCommand } from './cli/config-print.ts'
import { demoCommand } from './cli/demo.ts'
import { EXIT, withExitCodes } from './cli/exit-codes.ts'
import { generateKeyCommand } from './cli/generate-key.ts'
import { hashPasswordCommand } from './cli/hash-password.ts'
import { sandboxCommand } from './cli/sandbox.ts'
import { serveCommand } from './cli/serve.ts'

const program = new Command('parcel-relay')
  .description("Receives, polls, merges and serves a carrier's parcel status.")
  .addCommand(serveCommand())
  .addCommand(demoCommand())
  .addCommand(sandboxCommand())
  .addCommand(configCommand())
  .addCommand(hashPasswordCommand())
  .addCommand(generateKeyCommand())

try {
  await withExitCodes(program).parseAsync()
} catch (error) {
  process.stderr.write(`parcel-relay: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(EXIT.failed)
}
