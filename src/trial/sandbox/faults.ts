/** The faults to inject. 0 or false turns a fault off. Fractions are from 0 to 1. */
export interface Faults {
  /** Fraction of events that are never pushed. */
  readonly loss: number
  /** Fraction of events that are pushed twice. */
  readonly duplicates: number
  /** How many events are collected before they are shuffled and sent. Below 2, events are sent in the order in which they happen. */
  readonly reorder: number
  readonly delayMs: number
  readonly silence: boolean
  /** Fraction of status calls that are answered with 401, even if their token is good. */
  readonly unauthorized: number
  /** Fraction of status calls that are answered with 429. */
  readonly rateLimited: number
  /** The `Retry-After` of these 429 answers. */
  readonly retryAfterSeconds: number
  /** Fraction of status calls that are answered with 500, 502 or 503. */
  readonly serverErrors: number
  /** The delay of every answer of the carrier's API. */
  readonly latencyMs: number
  /** The lifetime of a token. A change also applies to tokens that were issued before it. */
  readonly tokenLifetimeMs: number
  /** Fraction of entries that have texts in one language only, in pushes and pulls alike. */
  readonly languageGaps: number
}

export const noFaults: Faults = {
  loss: 0,
  duplicates: 0,
  reorder: 0,
  delayMs: 0,
  silence: false,
  unauthorized: 0,
  rateLimited: 0,
  retryAfterSeconds: 1,
  serverErrors: 0,
  latencyMs: 0,
  tokenLifetimeMs: 3_600_000,
  languageGaps: 0,
}

const fractions: ReadonlySet<string> = new Set(['loss', 'duplicates', 'unauthorized', 'rateLimited', 'serverErrors', 'languageGaps'])

/** Applies a change to the faults. For unknown names and impossible values, throws a RangeError that says what to write. */
export function changedFaults(faults: Faults, change: unknown): Faults {
  if (typeof change !== 'object' || change === null || Array.isArray(change))
    throw new RangeError('faults must be an object of names and values')
  for (const [name, value] of Object.entries(change)) {
    if (!Object.hasOwn(noFaults, name))
      throw new RangeError(`there is no fault "${name}"; the faults are ${Object.keys(noFaults).join(', ')}`)
    if (name === 'silence') {
      if (typeof value !== 'boolean') throw new RangeError('silence must be true or false')
    } else if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) {
      throw new RangeError(`${name} must be a number of at least 0`)
    } else if (fractions.has(name) && value > 1) {
      throw new RangeError(`${name} must be a fraction from 0 to 1`)
    }
  }
  return { ...faults, ...change }
}
