import { inspect } from 'node:util'
import type { SecretOrigin } from '../domain/delivery/endpoint-keys.ts'

/** Printed in place of a secret. */
export const REDACTED = '[redacted]'

/** Text that prints as `[redacted]` in JSON, templates, the console and the log. Only `reveal` returns it. */
export interface Secret {
  /** Null: it is not known, or the text is in the config itself. */
  readonly from: SecretOrigin | null
  reveal(): string
  toString(): string
  toJSON(): string
}

const secrets = new WeakSet<object>()

export function createSecret(text: string, from: SecretOrigin | null = null): Secret {
  const masked = () => REDACTED
  const secret = Object.freeze({ from, reveal: () => text, toString: masked, toJSON: masked, [inspect.custom]: masked })
  secrets.add(secret)
  return secret
}

export function isSecret(value: unknown): value is Secret {
  return typeof value === 'object' && value !== null && secrets.has(value)
}

/** The same value with every secret in it revealed, for comparison only. */
export function revealAll(value: unknown): unknown {
  if (isSecret(value)) return value.reveal()
  if (Array.isArray(value)) return value.map(revealAll)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, revealAll(member)]))
}
