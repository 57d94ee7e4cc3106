import { changedFaults, type Faults, noFaults } from './faults.ts'
import { eachHardCase, type Mix } from './hard-cases.ts'
import type { TokenForm } from './tokens.ts'

/** Everything may be left out. */
export interface SandboxOptions {
  readonly host?: string
  /** 0 is any free port. */
  readonly port?: number
  readonly webhookUrls?: readonly string[]
  readonly sharedKey?: string
  readonly username?: string
  readonly password?: string
  readonly parcels?: number
  readonly seed?: number
  /** Simulated seconds per real second; 0 stands still until told to advance. */
  readonly speed?: number
  /** Time stands still until `resume`. */
  readonly paused?: boolean
  /**
   * Lives begin now and are lived in real time, `speed` times faster than planned, so that entries are as young as they look: what goes by
   * the age of an entry (closing checks, missed pushes) can only be tried like this. The timeline's own pace is then 1.
   */
  readonly live?: boolean
  /** The fraction of parcels that each hard case happens to; `mix` says it for some by name. */
  readonly hard?: number
  readonly mix?: Partial<Mix>
  readonly faults?: Partial<Faults>
  /** How often a push that was not answered 2xx is tried again. */
  readonly retries?: number
  readonly retryDelayMs?: number
  readonly pushTimeoutMs?: number
  readonly tokenForm?: TokenForm
  /** No planned scan is later; the lives begin 56 hours before (`live`: they begin here). Now if left out. */
  readonly anchorMs?: number
  /** The real time, epoch milliseconds. */
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

/** What a sandbox runs by. */
export interface Settings extends Required<Omit<SandboxOptions, 'hard' | 'mix' | 'faults'>> {
  readonly mix: Mix
  readonly faults: Faults
}

/** Throws a RangeError that says what to write. */
export function webhookUrlsOf(urls: readonly string[]): readonly string[] {
  for (const url of urls) {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) throw new RangeError(`not an http address: ${url}`)
  }
  return urls
}

/** The options with every gap filled. Throws a RangeError that says what to write. */
export function settingsOf(options: SandboxOptions): Settings {
  const { hard, mix = {}, now = Date.now, webhookUrls = [], ...given } = { ...sandboxDefaults, ...options }
  const shares = eachHardCase((name) => mix[name] ?? hard)
  for (const share of Object.values(shares)) if (!(share >= 0 && share <= 1)) throw new RangeError('hard cases: fractions from 0 to 1')
  if (!Number.isSafeInteger(given.parcels) || given.parcels < 0) throw new RangeError('parcels: a whole number from 0')
  if (!Number.isSafeInteger(given.seed)) throw new RangeError('seed: a whole number')
  if (!(given.speed >= 0 && given.speed < Infinity)) throw new RangeError('speed: a number from 0')
  if (!Number.isSafeInteger(given.retries) || given.retries < 0) throw new RangeError('retries: a whole number from 0')
  if (given.live && given.speed === 0) throw new RangeError('live: needs a speed above 0')
  if (given.sharedKey === '') throw new RangeError('shared key: must not be empty')
  return {
    ...given,
    mix: shares,
    now,
    webhookUrls: webhookUrlsOf(webhookUrls),
    faults: changedFaults(noFaults, options.faults ?? {}),
    // A whole second, so that the milliseconds of the scans are those of the seed.
    anchorMs: Math.floor((options.anchorMs ?? now()) / 1000) * 1000,
  }
}
