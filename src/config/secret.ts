import { inspect } from 'node:util'

/** Printed in place of a secret. */
export const REDACTED = '[redacted]'

/** Text that prints as `[redacted]` in JSON, templates, the console and the log. Only `reveal` returns it. */
export interface Secret {
  reveal(): string
  toString(): string
  toJSON(): string
}

const secrets = new WeakSet<object>()

export function createSecret(text: string): Secret {
  const masked = () => REDACTED
  const secret = Object.freeze({ reveal: () => text, toString: masked, toJSON: masked, [inspect.custom]: masked })
  secrets.add(secret)
  return secret
}

export function isSecret(value: unknown): value is Secret {
  return typeof value === 'object' && value !== null && secrets.has(value)
}
