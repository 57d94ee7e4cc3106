/** What goes wrong, each 0 or false when all is well. Fractions are 0 to 1, of events (pushes), answers (pulls) or entries (language gaps). */
export interface Faults {
  /** Fraction of events that are never pushed. */
  readonly loss: number
  /** Fraction of events that are pushed twice. */
  readonly duplicates: number
  /** Events are collected in windows of this many and shuffled within; below 2 they go out in the order they happen. */
  readonly reorder: number
  /** How long each push waits before it goes out. */
  readonly delayMs: number
  /** No pushes at all. */
  readonly silence: boolean
  /** Fraction of status calls answered 401 although their token is good. */
  readonly unauthorized: number
  /** Fraction of status calls answered 429. */
  readonly rateLimited: number
  /** What `Retry-After` says in those. */
  readonly retryAfterSeconds: number
  /** Fraction of status calls answered 500, 502 or 503. */
  readonly serverErrors: number
  /** How long every call of the carrier's API waits for its answer. */
  readonly latencyMs: number
  /** How long a token is good for; also shortens those already out. */
  readonly tokenLifetimeMs: number
  /** Fraction of entries whose texts exist in one language only, in pushes and pulls alike. */
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

/** The faults with a change applied. Throws a RangeError that says what to write, for unknown names and impossible values. */
export function changedFaults(faults: Faults, change: unknown): Faults {
  if (typeof change !== 'object' || change === null || Array.isArray(change)) throw new RangeError('faults: an object of names and values')
  for (const [name, value] of Object.entries(change)) {
    if (!Object.hasOwn(noFaults, name)) throw new RangeError(`no fault is called "${name}": ${Object.keys(noFaults).join(', ')}`)
    if (name === 'silence') {
      if (typeof value !== 'boolean') throw new RangeError('silence: true or false')
    } else if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) {
      throw new RangeError(`${name}: a number from 0`)
    } else if (fractions.has(name) && value > 1) {
      throw new RangeError(`${name}: a fraction from 0 to 1`)
    }
  }
  return { ...faults, ...change }
}
