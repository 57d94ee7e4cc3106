import type { Faults } from './faults.ts'
import type { PushAttempt, PushRecord } from './pusher.ts'
import type { ParcelOrder, PushOrder, ScanOrder } from './runtime-scan.ts'
import type { SandboxStats } from './stats.ts'
import type { Tally } from './tally.ts'
import type { ParcelNow } from './world.ts'

export interface SandboxParcel extends ParcelNow {
  /** Oldest first. */
  readonly pushes: readonly PushRecord[]
}

/** A running sandbox carrier, with access to everything it knows. */
export interface Sandbox {
  readonly url: string
  readonly world: {
    parcels(): readonly SandboxParcel[]
    /** Finds a parcel by any identifier, including the ones that the pull API does not know. */
    parcel(identifier: string): SandboxParcel | null
    readonly tally: Tally
  }
  stats(): SandboxStats
  faults(): Faults
  setFaults(change: Partial<Faults>): Faults
  setWebhookUrls(urls: readonly string[]): void
  revokeTokens(): void
  /** Pushes any body, also one that is not an event, signed with the shared key or another one. Resolves with the receivers' answers. */
  push(order: PushOrder): Promise<readonly PushAttempt[]>
  /** The simulated time, epoch milliseconds. */
  now(): number
  finished(): boolean
  resume(): void
  /** Advances the clock by simulated milliseconds; resolves when the pushes are out. */
  advance(byMs: number): Promise<void>
  /** Advances the clock to the last event; resolves when the pushes are out. */
  finish(): Promise<void>
  /** Resolves when no push is waiting. */
  settle(): Promise<void>
  addParcel(order: ParcelOrder): void
  scan(trackingNumber: string, order: ScanOrder): void
  stop(): Promise<void>
}
