import type { BackupFile, BackupProgress, MadeBackup } from '../../../domain/admin/backup.ts'

/** Copies an open store while it is written to. */
export interface StoreCopier {
  /**
   * Copies the store to a file, as it is when this resolves, in stretches so short that they delay nobody. Replaces an existing file. If it
   * fails, is stopped, or the store is closed, it rejects and removes the copy.
   */
  copy(file: string): Promise<void>
  /** How many pages were copied, and how many there are; null: no copy is being made. */
  progress(): { readonly done: number; readonly total: number } | null
  /** Makes a copy that is under way reject. */
  stop(): void
}

/** A backup to be made of a copy of the store. */
export interface BackupOrder {
  readonly name: string
  readonly directory: string
  /** The file that the store was copied to. It is gone afterwards, even if the backup fails. */
  readonly copy: string
  readonly madeAtMs: number
  /** The version of this relay. */
  readonly version: string
  /** The names of the keys in the config that encrypt secrets; empty: the relay made its own. */
  readonly keys: readonly string[]
  /** The file with the key that the relay makes, if it has made one. */
  readonly keyFile: string
  /** The last sequence of the feed before the copy began. */
  readonly sequence: number
  /** How many scheduled backups of this store are kept. */
  readonly keep: number
}

/** A backup that is complete in the folder. */
export interface PlacedBackup {
  readonly made: MadeBackup
  /** Why old scheduled backups beyond `keep` could not be removed; null: they were removed. */
  readonly unremoved: string | null
}

/** Checks a copy of the store, and then brings it to the folder of backups. */
export interface BackupMaker {
  /** Works for a moment. Rejects, with nothing left in the folder, if the copy is not whole or the folder fails. */
  advance(): Promise<BackupProgress | PlacedBackup>
  /** Gives up a backup that is not complete. */
  close(): Promise<void>
}

/** The folder of backups, as a disk or a network offers it: it may be slow, full, gone, or never answer. */
export interface BackupFolder {
  openMaker(order: BackupOrder): Promise<BackupMaker>
  /** The backups in the folder, the newest first. */
  list(directory: string): Promise<readonly BackupFile[]>
  /** Removes a copy of the store that became no backup, if it is still there. */
  discard(copy: string): Promise<void>
}
