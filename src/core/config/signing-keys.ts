import type { NamedKey } from '../domain/ingest/signature.ts'
import type { Config } from './config.ts'
import { readSecret } from './secret-setting.ts'

/** The keys of a config in plain text, with the names of their settings. They serve to find out which key signed a push. */
export interface SigningKeys {
  /** The keys that verify pushes. */
  readonly push: readonly NamedKey[]
  /** Other secrets, with which a sender may have signed by mistake. */
  readonly others: readonly NamedKey[]
}

export function signingKeysOf({ webhook, endpoints, operator, upstream }: Config): SigningKeys {
  return {
    push: webhook.sharedKeys.map((key, at) => ({ name: `webhook.sharedKeys[${at}]`, key: key.reveal() })),
    others: [
      ...endpoints.slice(0, ENDPOINTS_MAX).map(({ sharedKey }, at) => ({ name: `endpoints[${at}].sharedKey`, key: sharedKey.reveal() })),
      ...(operator === null || operator.sharedKey === null ? [] : [{ name: 'operator.sharedKey', key: operator.sharedKey.reveal() }]),
      { name: 'upstream.password', key: upstream.password.reveal() },
    ],
  }
}

/** At most this many endpoints' keys are tried, because a config may have very many. */
const ENDPOINTS_MAX = 20

/** Reads a secret from an environment variable. Throws if it is not set or empty; the message calls the secret `what`. */
export function secretInVariable(what: string, name: string, env: NodeJS.ProcessEnv = process.env): string {
  const reading = readSecret({ env: name }, env)
  if (reading.kind === 'unreadable') throw new Error(`${what} ${reading.problem}`)
  return reading.secret.reveal()
}

/** Reads keys from files and environment variables instead of a config. If a key cannot be read, throws an error that names its file or variable. */
export function signingKeysIn(files: readonly string[], variables: readonly string[], env: NodeJS.ProcessEnv = process.env): SigningKeys {
  const given = [...files.map((file) => ({ file })), ...variables.map((name) => ({ env: name }))]
  const push = given.map((reference) => {
    const name = `the key in ${'file' in reference ? reference.file : reference.env}`
    const reading = readSecret(reference, env)
    if (reading.kind === 'unreadable') throw new Error(`${name} ${reading.problem}`)
    return { name, key: reading.secret.reveal() }
  })
  return { push, others: [] }
}
