import { inspect } from 'node:util'

/** What stands wherever a secret would have been printed. */
export const REDACTED = '[redacted]'

/** Text that does not print itself: JSON, templates, the console and the log all show `[redacted]`. Only `reveal` tells it. */
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
