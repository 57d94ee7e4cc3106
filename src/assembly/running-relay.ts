import type { Config } from '../core/config/config.ts'
import type { Actor } from '../core/domain/admin/operator-action.ts'
import type { ReloadConfig, Reloaded } from '../core/flow/ports.ts'
import type { ManageMovesPorts } from '../upkeep/moving/manage-moves.ts'
import type { Threads } from './hosting/threads.ts'

export interface RunningRelay {
  /** The addresses with the ports that are in use, for example `http://127.0.0.1:8080`. */
  readonly publicUrl: string
  readonly internalUrl: string
  /** The name of the store in messages. */
  readonly store: string
  /** Resolves with the reason if the relay cannot go on: a thread has ended, or no relay has taken over after a move. */
  readonly died: Promise<unknown>
  /**
   * Applies a reloaded config: its apps, webhook keys, carrier password, endpoints, delivery, operator and backups. Also reads the files of
   * certificates again. If a certificate cannot be used, the relay keeps the previous one. All other settings need a restart. If it rejects,
   * the relay keeps its settings. `by`: who has ordered the reload; absent: a signal.
   */
  reload(config: Config, by?: Actor): Promise<Reloaded>
  reloadFailed(problems: readonly string[]): Promise<void>
  /**
   * Finishes everything in flight. After that the relay does not poll, send or store anything. It still answers requests, but answers pushes
   * with 503. Call `stop` afterwards.
   */
  endWriting(): Promise<void>
  /** Accepts nothing new, finishes everything in flight within the time (default: the shutdown timeout), and closes the store. */
  stop(timeoutMs?: number): Promise<void>
}

/** How to start a relay. It may replace another relay of this process. */
export interface StartOptions {
  /** Threads that are already starting. */
  readonly threads?: Threads | undefined
  /** Stops the relay that this one replaces, which frees its addresses. Called when everything but the listeners is ready. */
  readonly stopPredecessor?: () => Promise<void>
  /** Lets another relay take over after a move; absent: the store cannot be moved. */
  readonly handOver?: NonNullable<ManageMovesPorts['handOver']>
  /** Reads the config file again; absent: the config does not come from a file, so it cannot be reloaded. */
  readonly reloadConfig?: ReloadConfig | undefined
}
