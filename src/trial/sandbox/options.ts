import { changedFaults, type Faults, noFaults } from './faults.ts'
import { eachHardCase, type Mix } from './hard-cases.ts'
import type { TokenForm } from './tokens.ts'

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
