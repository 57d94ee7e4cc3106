import type { Actor } from '../../domain/admin/operator-action.ts'

/** The result of a reload. It has the settings' names in the file, and no values. */
export interface Reloaded {
  /** Settings that have changed since the last reload and are in effect. */
  readonly changed: readonly string[]
  /** Settings that have changed since the start and need a restart. */
  readonly needsRestart: readonly string[]
  /** Files that could not be used; what they held before stays in use. */
  readonly problems: readonly string[]
}

/**
 * Reads the config file again and applies it, one reload after the other. Throws `not_reloadable` with the mistakes of the file under
 * `problems`, and `storage_unavailable`; nothing has changed then.
 */
export type ReloadConfig = (by: Actor) => Promise<Reloaded>
