import type { Config } from '../config/config.ts'
import type { Actor } from '../domain/admin/operator-action.ts'
import type { ManageMovesPorts } from '../flow/admin/moving/manage-moves.ts'
import type { ReloadConfig, Reloaded } from '../flow/admin/reload-config.ts'
import type { Threads } from './hosting/threads.ts'

/** A relay that was started. */
export interface RunningRelay {
  /** Addresses as bound, for example `http://127.0.0.1:8080`. */
  readonly publicUrl: string
  readonly internalUrl: string
  /** Names the store in use. */
  readonly store: string
  /** Resolves with the reason if the relay cannot go on: a thread has ended, or no relay has taken over after a move. */
  readonly died: Promise<unknown>
  /**
   * Applies a reloaded config: its apps, webhook keys, carrier password, endpoints, delivery, operator and backups. Also reads the files of
   * certificates again. Everything else needs a restart. If it rejects, nothing has changed. If a certificate cannot be used, the relay
   * keeps the previous one. `by`: who ordered it; absent: a signal did.
   */
  reload(config: Config, by?: Actor): Promise<Reloaded>
  /** Tells operators that a config could not be reloaded, and why. */
  reloadFailed(problems: readonly string[]): Promise<void>
  /**
   * Finishes everything in flight. Then the relay polls, sends and stores nothing any more. It still answers requests, but answers pushes
   * with 503. Call `stop` afterwards.
   */
  endWriting(): Promise<void>
  /** Accepts nothing new, finishes everything in flight within the time (default: the shutdown timeout), and closes the store. */
  stop(timeoutMs?: number): Promise<void>
}

/** How a relay starts next to another one. */
export interface StartOptions {
  /** Threads that are already starting. */
  readonly threads?: Threads | undefined
  /** Ends another relay, which frees its addresses. Called when everything else is ready. */
  readonly stopPredecessor?: () => Promise<void>
  /** Absent: the store cannot be moved. */
  readonly handOver?: NonNullable<ManageMovesPorts['handOver']>
  /** Absent: the config comes from no file, so it cannot be reloaded. */
  readonly reloadConfig?: ReloadConfig | undefined
}
