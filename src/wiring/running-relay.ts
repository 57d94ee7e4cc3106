import type { Config } from '../config/config.ts'
import type { ManageMovesPorts } from '../flow/admin/moving/manage-moves.ts'
import type { Threads } from './hosting/threads.ts'

/** A relay that was started. */
export interface RunningRelay {
  /** Addresses as bound, for example `http://127.0.0.1:8080`. */
  readonly publicUrl: string
  readonly internalUrl: string
  /** Names the store in use. */
  readonly store: string
  /** Resolves with the reason if the relay cannot go on: a thread has ended, or after a move no relay has taken over. */
  readonly died: Promise<unknown>
  /**
   * Applies the apps, webhook keys, carrier password, endpoints, delivery, operator and backups of a reloaded config, and reads the files of
   * certificates again; the rest needs a restart. Rejects, with nothing changed, if it cannot. If a certificate cannot be used, the
   * previous one stays in use.
   */
  reload(config: Config): Promise<Reloaded>
  /** Tells operators that a config could not be reloaded, and why. */
  reloadFailed(problems: readonly string[]): Promise<void>
  /**
   * Finishes what is in flight, and then polls, sends and stores nothing any more. The relay still answers requests, but pushes with 503.
   * Call `stop` afterwards.
   */
  endWriting(): Promise<void>
  /** Accepts nothing new, finishes what is in flight within the time (default: the shutdown timeout), and closes the store. */
  stop(timeoutMs?: number): Promise<void>
}

/** What a reload did. Settings have their names in the file; no value is named. */
export interface Reloaded {
  /** Settings that have changed since the last reload and are in effect. */
  readonly changed: readonly string[]
  /** Settings that have changed since the start and need a restart. */
  readonly needsRestart: readonly string[]
  /** Files that could not be used; what they held before stays in use. */
  readonly problems: readonly string[]
}

/** How a relay starts beside another one. */
export interface StartOptions {
  /** Threads that are already starting. */
  readonly threads?: Threads | undefined
  /** Ends another relay, which frees its addresses. Called when everything else is ready. */
  readonly stopPredecessor?: () => Promise<void>
  /** Absent: the store cannot be moved. */
  readonly handOver?: NonNullable<ManageMovesPorts['handOver']>
}
