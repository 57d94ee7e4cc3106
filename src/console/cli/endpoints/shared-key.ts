import type { Command } from 'commander'
import { signingKeysIn } from '../../../core/config/signing-keys.ts'
import type { KeyedEndpointAnswer } from '../../../core/http/delivery/endpoints.routes.ts'

export interface KeyOptions {
  readonly keyFile?: string
  readonly keyEnv?: string
}

/** Adds the options that name a key. The key itself is never an argument, because `ps` and the shell history show arguments. */
export function addKeyOptions(command: Command): Command {
  return command
    .option('--key-file <file>', 'sign with the key in this file')
    .option('--key-env <name>', 'sign with the key in this environment variable')
}

/** Reads the key for the `sharedKey` member of a request. If the user named no key, there is no member, and the relay makes a key. */
export function keyIn({ keyFile, keyEnv }: KeyOptions): { readonly sharedKey?: string } {
  if (keyFile !== undefined && keyEnv !== undefined) throw new Error('name the key with --key-file or with --key-env, not with both')
  const [key] = signingKeysIn(keyFile === undefined ? [] : [keyFile], keyEnv === undefined ? [] : [keyEnv]).push
  return key === undefined ? {} : { sharedKey: key.key }
}

/** Prints a key that the relay has made. A key that the user gave is not printed, because it is known and should not appear on a screen. */
export function printKey({ sharedKey }: KeyedEndpointAnswer, given: { readonly sharedKey?: string }): void {
  if (sharedKey !== undefined && given.sharedKey === undefined)
    process.stdout.write(`Its key, which is shown only this once: ${sharedKey}\n`)
}
