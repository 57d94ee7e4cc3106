import { inspect } from 'node:util'
import type { SecretOrigin } from '../domain/delivery/endpoint-keys.ts'

/** The text that is printed instead of a secret. */
export const REDACTED = '[redacted]'

/** A text that prints as `[redacted]` in JSON, templates, the console and the log. Only `reveal` returns the text. */
export interface Secret {
  /** The variable or file that the secret was read from; null: unknown, or the config file itself contains the text. */
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

/** Returns the value with every secret in it revealed, only to compare it with another value. */
export function revealAll(value: unknown): unknown {
  if (isSecret(value)) return value.reveal()
  if (Array.isArray(value)) return value.map(revealAll)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, revealAll(member)]))
}
