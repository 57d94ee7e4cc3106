import { eachHardCase, type Mix } from './parcel-plan.ts'

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

/** The form of tokens: a JWT, which names its expiry in `exp`, or random text. */
export type TokenForm = 'opaque' | 'jwt'

export interface SandboxOptions {
  readonly host?: string
  /** 0: any free port. */
  readonly port?: number
  readonly webhookUrls?: readonly string[]
  readonly sharedKey?: string
  readonly username?: string
  readonly password?: string
  readonly parcels?: number
  readonly seed?: number
  /** Simulated seconds per real second; 0: the clock moves only when advanced. */
  readonly speed?: number
  /** Whether the clock stands still until `resume`. */
  readonly paused?: boolean
  /**
   * Whether parcels start now, and the clock runs at speed 1. The time between scans is then divided by `speed`. Tests of rules about the age of an
   * entry need this, because entries then have real times.
   */
  readonly live?: boolean
  /** The fraction of parcels that get each hard case. `mix` sets other fractions for some cases. */
  readonly hard?: number
  readonly mix?: Partial<Mix>
  readonly faults?: Partial<Faults>
  /** How often a push that was not answered with 2xx is tried again. */
  readonly retries?: number
  readonly retryDelayMs?: number
  readonly pushTimeoutMs?: number
  readonly tokenForm?: TokenForm
  /** Parcels start 56 hours before this time, and no scan is planned after it. With `live`, parcels start at this time. Default: now. */
  readonly anchorMs?: number
  /** Returns the real time, in epoch milliseconds. */
  readonly now?: () => number
}

export const sandboxDefaults = {
  host: '127.0.0.1',
  port: 0,
  sharedKey: 'sandbox-shared-key-no-secret',
  username: 'demo',
  password: 'demo-password',
  parcels: 20,
  seed: 1,
  speed: 3600,
  hard: 0.15,
  paused: false,
  live: false,
  retries: 0,
  retryDelayMs: 1_000,
  pushTimeoutMs: 10_000,
  tokenForm: 'opaque',
} as const

export interface Settings extends Required<Omit<SandboxOptions, 'hard' | 'mix' | 'faults'>> {
  readonly mix: Mix
  readonly faults: Faults
}

/** Throws a RangeError that names a wrong address. */
export function webhookUrlsOf(urls: readonly string[]): readonly string[] {
  for (const url of urls) {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) throw new RangeError(`not an http address: ${url}`)
  }
  return urls
}

/** Throws a RangeError that says what to write. */
export function settingsOf(options: SandboxOptions): Settings {
  const { hard, mix = {}, now = Date.now, webhookUrls = [], ...given } = { ...sandboxDefaults, ...options }
  const shares = eachHardCase((name) => mix[name] ?? hard)
  for (const share of Object.values(shares))
    if (!(share >= 0 && share <= 1)) throw new RangeError('hard cases must be fractions from 0 to 1')
  if (!Number.isSafeInteger(given.parcels) || given.parcels < 0) throw new RangeError('parcels must be a whole number of at least 0')
  if (!Number.isSafeInteger(given.seed)) throw new RangeError('seed must be a whole number')
  if (!(given.speed >= 0 && given.speed < Infinity)) throw new RangeError('speed must be a number of at least 0')
  if (!Number.isSafeInteger(given.retries) || given.retries < 0) throw new RangeError('retries must be a whole number of at least 0')
  if (given.live && given.speed === 0) throw new RangeError('live needs a speed above 0')
  if (given.sharedKey === '') throw new RangeError('the shared key must not be empty')
  return {
    ...given,
    mix: shares,
    now,
    webhookUrls: webhookUrlsOf(webhookUrls),
    faults: changedFaults(noFaults, options.faults ?? {}),
    // Use a whole second, so that the seed alone decides the milliseconds of the scans.
    anchorMs: Math.floor((options.anchorMs ?? now()) / 1000) * 1000,
  }
}
