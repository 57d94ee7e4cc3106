import { z } from 'zod'

/** A backup in the folder of backups. Times are epoch milliseconds. */
export interface BackupFile {
  readonly name: string
  readonly bytes: number
  readonly madeAtMs: number
  /** Whether the key that encrypts its secrets lies beside it. */
  readonly hasKey: boolean
}

const manifestSchema = z.object({
  name: z.string(),
  /** The id of the relay, the same for all backups of a store. */
  relayId: z.string(),
  madeAtMs: z.number(),
  /** The version of the relay that made it. */
  version: z.string(),
  /** The last number of the feed. */
  sequence: z.number(),
  /** The names of the keys that encrypt its secrets; empty: its key lies beside it, or there is no key yet. */
  keys: z.array(z.string()),
  /** How many rows each table holds. */
  rows: z.record(z.string(), z.number()),
})

/** The description of a backup, stored in the backup itself. */
export type BackupManifest = Readonly<z.infer<typeof manifestSchema>>

/** Parses a manifest; null: the text is not one. */
export function parseManifest(text: string): BackupManifest | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  return manifestSchema.safeParse(value).data ?? null
}

/** The steps of a backup, in order: the store is copied beside itself, the copy is proved, and it is moved to the folder of backups. */
export type BackupStep = 'copying' | 'verifying' | 'placing'

/** The progress of a backup. `done` and `total` count pages of the store, then tables, then bytes. */
export interface BackupProgress {
  readonly step: BackupStep
  readonly done: number
  readonly total: number
}

/** The state of the backups of a store. The store holds it. Times are epoch milliseconds. */
export interface BackupState {
  /** The last backup that was made; null: there is none. */
  readonly last: MadeBackup | null
  /** If the last attempt failed: why, and when the first attempt since the last success failed. Null: it did not fail. */
  readonly failing: { readonly sinceMs: number; readonly reason: string } | null
}

export interface MadeBackup {
  readonly name: string
  readonly atMs: number
  readonly bytes: number
}

export const NO_BACKUPS: BackupState = { last: null, failing: null }

/** Why a backup's job has failed if the relay was stopped or killed. */
export const BACKUP_WAS_STOPPED = 'The relay was stopped before the backup was done. Nothing of it was kept.'

const SCHEDULED = 'scheduled-'
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$/

/** Why a text cannot be the name of a backup that an operator orders; null: it can. The reason completes "name ...". */
export function nameProblem(name: string): string | null {
  if (!NAME.test(name)) return 'must be 1 to 80 letters, digits and . _ -, and begin with a letter or digit'
  if (name.startsWith(SCHEDULED))
    return `must not begin with "${SCHEDULED}", because scheduled backups do, and old ones of those are removed`
  return /\.(?:db|key|part)$/.test(name) ? 'must not end in .db, .key or .part: the relay adds the endings' : null
}

/** The name of a scheduled backup: its time in UTC, to the second. */
export function scheduledName(atMs: number): string {
  return `${SCHEDULED}${new Date(atMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
}

/** Whether the schedule has made a backup. Only scheduled backups are removed when there are newer ones. */
export function isScheduled(name: string): boolean {
  return /^scheduled-\d{8}T\d{6}Z$/.test(name)
}

/** The scheduled backups of one store, by name, that are older than the newest `keep`. */
export function outlived(names: readonly string[], keep: number): readonly string[] {
  const scheduled = names.filter(isScheduled)
  return scheduled.toSorted().slice(0, Math.max(0, scheduled.length - keep))
}

const stateSchema = z.object({
  last: z.object({ name: z.string(), atMs: z.number(), bytes: z.number() }).nullable(),
  failing: z.object({ sinceMs: z.number(), reason: z.string() }).nullable(),
})

/** Parses the stored state of backups. If it cannot be read, it counts as a state without backups. */
export function parseBackupState(text: string): BackupState {
  try {
    return stateSchema.safeParse(JSON.parse(text)).data ?? NO_BACKUPS
  } catch {
    return NO_BACKUPS
  }
}
