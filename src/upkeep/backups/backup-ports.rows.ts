import type { ErasureTrace } from '../erasure/erasure.rules.ts'
import type { BackupFile, BackupPlace, BackupProgress, MadeBackup } from './backup.rules.ts'

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
