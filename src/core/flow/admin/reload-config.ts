import type { Actor } from '../../domain/admin/operator-action.ts'

/** The result of a reload. It names settings as the config file does, and holds no values. */
export interface Reloaded {
  /** Settings that have changed since the last reload and are in effect. */
  readonly changed: readonly string[]
  /** Settings that have changed since the start and need a restart. */
  readonly needsRestart: readonly string[]
  /** Files that could not be used. Their previous content stays in use. */
  readonly problems: readonly string[]
}

/**
 * Reads the config file again and applies it. A reload waits until an earlier reload has ended. Throws `not_reloadable`, with the mistakes
 * in the file under `problems`, and `storage_unavailable`. If it throws, the settings in effect stay as they were.
 */
export type ReloadConfig = (by: Actor) => Promise<Reloaded>
