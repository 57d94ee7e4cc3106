import type { BackupFile, BackupProgress, MadeBackup } from '../../../domain/admin/backup.ts'

/** Copies an open store while others write to it. */
export interface StoreCopier {
  /**
   * Copies the store to a file, in steps so short that they delay nobody. The copy has the state of the store at the end of the copying.
   * Replaces an existing file. If the copy fails or is stopped, or the store is closed, it rejects and removes the copy.
   */
  copy(file: string): Promise<void>
  /** How many pages are copied, and how many there are; null: no copy is being made. */
  progress(): { readonly done: number; readonly total: number } | null
  /** Ends the copying, which then rejects. */
  stop(): void
}

/** An order to make a backup of a copy of the store. */
export interface BackupOrder {
  readonly name: string
  readonly directory: string
  /** The file with the copy of the store. Whatever happens, the file is gone afterwards. */
  readonly copy: string
  readonly madeAtMs: number
  /** The version of this relay. */
  readonly version: string
  /** The names of the at-rest keys in the config; empty: the relay made its own key. */
  readonly keys: readonly string[]
  /** The file with the key that the relay has made; it may be missing. */
  readonly keyFile: string
  /** The last sequence of the feed before the copy began. */
  readonly sequence: number
  /** How many scheduled backups of this store are kept. */
  readonly keep: number
}

/** A backup that is complete and in the folder. */
export interface PlacedBackup {
  readonly made: MadeBackup
  /** Why scheduled backups beyond `keep` could not be removed; null: they were removed. */
  readonly unremoved: string | null
}

/** Checks a copy of the store, and then brings it to the folder of backups. */
export interface BackupMaker {
  /** Works for a moment. Rejects if the copy is damaged or the folder fails, and leaves nothing in the folder. */
  advance(): Promise<BackupProgress | PlacedBackup>
  /** Gives up a backup that is not complete. */
  close(): Promise<void>
}

/** The folder of backups, on a disk or a network: it may be slow, full, gone, or never answer. */
export interface BackupFolder {
  openMaker(order: BackupOrder): Promise<BackupMaker>
  /** The backups in the folder, the newest first. */
  list(directory: string): Promise<readonly BackupFile[]>
  /** Removes a copy of the store that did not become a backup, if it is still there. */
  discard(copy: string): Promise<void>
}
