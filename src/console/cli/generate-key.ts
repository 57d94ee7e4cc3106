import { randomBytes } from 'node:crypto'
import { Command } from 'commander'
import { withExitCodes } from './exit-codes.ts'

/** `generate-key`: prints 32 random bytes in Base64, for a shared key or an at-rest key. */
export function generateKeyCommand(): Command {
  const command = new Command('generate-key')
    .description('print a new random key (32 bytes in Base64), for webhook.sharedKeys, an endpoint or secrets.atRestKeys')
    .action(() => {
      process.stdout.write(`${randomBytes(32).toString('base64')}\n`)
    })
  return withExitCodes(command)
}
