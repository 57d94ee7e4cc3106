import { Command } from 'commander'
import { signingKeysIn } from '../../core/config/signing-keys.ts'
import { fingerprintKey } from '../../core/domain/delivery/endpoint-keys.ts'
import { withExitCodes } from './exit-codes.ts'

interface FingerprintOptions {
  readonly keyFile: readonly string[]
  readonly keyEnv: readonly string[]
  readonly json?: true
}

/** `fingerprint`: shows the fingerprints of keys, to compare them with those that `endpoints show` prints. It sends no requests. */
export function fingerprintCommand(): Command {
  const all = (value: string, before: readonly string[] = []) => [...before, value]
  const command = new Command('fingerprint')
    .description('print the fingerprint of a shared key, to compare it with what `endpoints show` prints without showing the key')
    .option('--key-file <file>', 'the key in this file; may be repeated', all, [])
    .option('--key-env <name>', 'the key in this environment variable; may be repeated', all, [])
    .option('--json', 'print JSON')
    .action(({ keyFile, keyEnv, json }: FingerprintOptions, self: Command) => {
      if (keyFile.length + keyEnv.length === 0) self.error('error: name a key with --key-file or --key-env')
      const prints = signingKeysIn(keyFile, keyEnv).push.map(({ name, key }) => ({ name, fingerprint: fingerprintKey(key) }))
      const lines = prints.map(({ name, fingerprint }) => `${fingerprint}  ${name}\n`)
      process.stdout.write(json === true ? `${JSON.stringify({ keys: prints })}\n` : lines.join(''))
    })
  return withExitCodes(command)
}
