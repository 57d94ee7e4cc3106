import type { Faults } from './faults.ts'
import type { PushAttempt, PushRecord } from './pusher.ts'
import type { ParcelOrder, PushOrder, ScanOrder } from './runtime-scan.ts'
import type { SandboxStats, Tally } from './stats.ts'
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
    /** Finds a parcel by any of its identifiers, even by one that the pull API does not know. */
    parcel(identifier: string): SandboxParcel | null
    readonly tally: Tally
  }
  stats(): SandboxStats
  faults(): Faults
  setFaults(change: Partial<Faults>): Faults
  setWebhookUrls(urls: readonly string[]): void
  revokeTokens(): void
  /** Pushes any body, even one that is not an event. Resolves with the receivers' answers. */
  push(order: PushOrder): Promise<readonly PushAttempt[]>
  /** Returns the simulated time, in epoch milliseconds. */
  now(): number
  finished(): boolean
  resume(): void
  /** Advances the clock by simulated milliseconds. Resolves when no push is waiting. */
  advance(byMs: number): Promise<void>
  /** Advances the clock to the last event. Resolves when no push is waiting. */
  finish(): Promise<void>
  /** Resolves when no push is waiting. */
  settle(): Promise<void>
  addParcel(order: ParcelOrder): void
  scan(trackingNumber: string, order: ScanOrder): void
  stop(): Promise<void>
}
