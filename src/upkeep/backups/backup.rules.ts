import { z } from 'zod'
import { parseStoredAs } from '../../core/domain/json-body.ts'
import type { ErasureTrace } from '../erasure/erasure.rules.ts'

declare module '../../core/domain/admin/job.ts' {
  interface JobTasks {
    readonly backup: BackupJobTask
  }
}

export interface BackupJobTask {
  readonly kind: 'backup'
  readonly name: string
}

export interface BackupFile {
  readonly name: string
  readonly bytes: number
  readonly madeAtMs: number
  /** Whether the folder also has the key that encrypts the secrets in the backup. */
  readonly hasKey: boolean
}

const manifestSchema = z.object({
  name: z.string(),
  /** The same in all backups of a store. */
  relayId: z.string(),
  madeAtMs: z.number(),
  /** The version of the relay. */
  version: z.string(),
  /** The last sequence of the feed in the backup. */
  sequence: z.number(),
  /** The names of the configured keys that encrypt the secrets in the backup; empty: a key file encrypts them, or there is no key yet. */
  keys: z.array(z.string()),
  /** By table. */
  rows: z.record(z.string(), z.number()),
  /** Whether the backup holds a digest of itself. */
  isDigested: z.boolean().optional(),
})

/** The description of a backup, stored in the backup itself. */
export type BackupManifest = Readonly<z.infer<typeof manifestSchema>>

/** Returns null if the text is no manifest. */
export function parseManifest(text: string): BackupManifest | null {
  return parseStoredAs(manifestSchema, text)
}

/** In order: the store is copied to a file beside it, the copy is verified, and then moved to the folder of backups. */
type BackupStep = 'copying' | 'verifying' | 'placing'

/** `done` and `total` count pages of the store while copying, tables while verifying, and bytes while placing. */
export interface BackupProgress {
  readonly step: BackupStep
  readonly done: number
  readonly total: number
}

/** What a store remembers of its backups. Times are epoch milliseconds. */
export interface BackupState {
  /** Null: no backup was made yet. */
  readonly last: MadeBackup | null
  /** Why the last attempt failed, and since when all attempts have failed. Null: the last attempt succeeded, or there was none. */
  readonly failing: { readonly sinceMs: number; readonly reason: string } | null
}

export interface MadeBackup {
  readonly name: string
  readonly atMs: number
  readonly bytes: number
  /** Where it was made; absent: not known. */
  readonly place?: BackupPlace | undefined
}

export interface BackupEnd {
  /** Null: the backup did not begin. */
  readonly jobId: number | null
  readonly name: string
  readonly nowMs: number
  readonly made: MadeBackup | null
  /** Null: the backup was made, or an operator has cancelled it. */
  readonly failure: string | null
}

/** A folder of backups. `mountedAt`: the folder at which its disk was mounted: the folder itself, or one that contains it. */
export interface BackupPlace {
  readonly directory: string
  readonly mountedAt: string
}

/**
 * Throws if a folder lies on the disk around the one on which the last backup was made in it. Then that disk is not mounted, and its empty mount
 * point would fill another disk. `last` null: no backup is known.
 */
export function refuseUnmounted(last: BackupPlace | null, { directory, mountedAt }: BackupPlace): void {
  if (last === null || last.directory !== directory || last.mountedAt.length <= mountedAt.length) return
  throw new Error(
    `the last backup in ${directory} was made on a disk that was mounted at ${last.mountedAt}, and that disk is not mounted now. ` +
      'Mount it. If backups are to be made without it, name another folder in backup.directory',
  )
}

/** The setting in which a store keeps its `BackupState`. */
export const BACKUP_STATE = 'backup-state'

export const NO_BACKUPS: BackupState = { last: null, failing: null }

export const BACKUP_WAS_STOPPED = 'The relay was stopped before the backup was done. Nothing of it was kept.'

const SCHEDULED = 'scheduled-'
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$/

/** Returns what is wrong with a name for a backup. The text continues a sentence that begins with `name`. Null: the name is allowed. */
export function nameProblem(name: string): string | null {
  if (!NAME.test(name)) return 'must be 1 to 80 letters, digits and . _ -, and begin with a letter or digit'
  if (name.startsWith(SCHEDULED))
    return `must not begin with "${SCHEDULED}", because scheduled backups do, and old ones of those are removed`
  return /\.(?:db|key|part)$/.test(name) ? 'must not end in .db, .key or .part: the relay adds the endings' : null
}

/** Returns the name of a scheduled backup. It holds the relay, so that several relays can use one folder and one schedule. */
export function scheduledName(atMs: number, relayId: string): string {
  return `${timedName(atMs)}-${relayId.slice(0, RELAY_LENGTH)}`
}

const RELAY_LENGTH = 8

function timedName(atMs: number): string {
  return `${SCHEDULED}${new Date(atMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
}

/** Only scheduled backups are removed when there are enough newer ones. */
export function isScheduled(name: string): boolean {
  return /^scheduled-\d{8}T\d{6}Z-[0-9a-f]{1,8}$/.test(name)
}

/** Whether a name is that of a scheduled backup of this relay. */
export function mayBeOf(name: string, relayId: string): boolean {
  return isScheduled(name) && name.endsWith(`-${relayId.slice(0, RELAY_LENGTH)}`)
}

/** Returns the scheduled backups whose names are of a time after `nowMs`, because a clock was ahead when they were made. */
export function namedAhead(names: readonly string[], nowMs: number): readonly string[] {
  return names.filter((name) => isScheduled(name) && name.slice(0, timedName(nowMs).length) > timedName(nowMs))
}

/**
 * Returns the names of all scheduled backups but the newest `keep` up to the time `nowMs`. Those with later names do not count. `made`: the one
 * just made, which is the newest whatever its name, because the clock may have changed while it was made. `names`: the backups of one store.
 */
export function outlived(names: readonly string[], keep: number, nowMs: number, made: string): readonly string[] {
  const ahead = new Set(namedAhead(names, nowMs))
  const older = names.filter((name) => isScheduled(name) && !ahead.has(name) && name !== made)
  return older.toSorted().slice(0, Math.max(0, older.length - keep + (isScheduled(made) ? 1 : 0)))
}

/**
 * Returns a name for the scheduled backup of a time: the clock may have been put back, so that others have the names of this time. Null: the last
 * backup has it, so it was made for this time a moment ago. `known` empty: the folder could not be read, so that the backup will fail.
 */
export function freeScheduledName(
  atMs: number,
  relayId: string,
  known: readonly Pick<BackupFile, 'name'>[],
  last: string | undefined,
): string | null {
  const name = scheduledName(atMs, relayId)
  if (!known.some((one) => one.name === name)) return name
  return name === last ? null : freeScheduledName(atMs + 1000, relayId, known, undefined)
}

const stateSchema = z.object({
  last: z
    .object({
      name: z.string(),
      atMs: z.number(),
      bytes: z.number(),
      place: z.object({ directory: z.string(), mountedAt: z.string() }).optional(),
    })
    .nullable(),
  failing: z.object({ sinceMs: z.number(), reason: z.string() }).nullable(),
})

/** `failure` null: the backup was made, or an operator has cancelled it. */
export function stateAfterBackup(
  before: BackupState,
  { made, failure, nowMs }: { readonly made: MadeBackup | null; readonly failure: string | null; readonly nowMs: number },
): BackupState {
  if (made !== null) return { last: made, failing: null }
  return failure === null ? before : { ...before, failing: { sinceMs: before.failing?.sinceMs ?? nowMs, reason: failure } }
}

/** A text that cannot be parsed counts as a state without backups. */
export function parseBackupState(text: string): BackupState {
  return parseStoredAs(stateSchema, text) ?? NO_BACKUPS
}

export interface BackupOrder {
  readonly name: string
  readonly directory: string
  /** Where the last backup was made; null: not known. */
  readonly lastPlace: BackupPlace | null
  /** The file with the copy of the store. It is removed after the backup, even if the backup fails. */
  readonly copy: string
  readonly madeAtMs: number
  readonly version: string
  /** The names of the at-rest keys in the config; empty: the relay made its own key. */
  readonly keys: readonly string[]
  /** The file with the at-rest key that the relay itself made. It may be missing. */
  readonly keyFile: string
  /** The last sequence of the feed before the copy began. */
  readonly sequence: number
  /** How many scheduled backups of this store are kept. */
  readonly keep: number
}

/** A complete backup in the folder of backups. */
export interface PlacedBackup {
  readonly made: MadeBackup
  /** Why scheduled backups beyond `keep` could not be removed; null: there was no problem. */
  readonly unremoved: string | null
}

/** Checks a copy of the store, and then moves it into the folder of backups. */
export interface BackupMaker {
  /** Does the next short part of the work. Rejects if the copy is damaged or the folder fails. Then it leaves nothing in the folder. */
  advance(): Promise<BackupProgress | PlacedBackup>
  /** Removes the parts of a backup that is not complete. */
  close(): Promise<void>
}

export interface BackupComparison {
  readonly directory: string
  readonly names: readonly string[]
  readonly relayId: string
  readonly trace: ErasureTrace
}

/** The folder of backups, on a disk or a network. It may be slow, full or missing, and may not answer at all. */
export interface BackupFolder {
  openMaker(order: BackupOrder): Promise<BackupMaker>
  /** Lists the backups in the folder, the newest first. `lastPlace`: see `refuseUnmounted`. */
  list(directory: string, lastPlace: BackupPlace | null): Promise<readonly BackupFile[]>
  /** Returns which of the backups of a relay are certainly without erased parcels. */
  without(request: BackupComparison): Promise<readonly string[]>
  /** Removes a copy of the store that did not become a backup. Does nothing if the copy does not exist. */
  discard(copy: string): Promise<void>
}
