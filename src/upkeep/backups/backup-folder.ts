import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { systemCode } from '../../core/domain/errors.ts'
import { isDamage, statIfThere } from '../../core/store/sqlite/file.ts'
import { closeFolder, FOLDER_MODE, syncFolder } from '../../core/store/sqlite/whole-file.ts'
import { isThere } from '../../regular-file.ts'
import { type BackupFile, type BackupPlace, mayBeOf, outlived, refuseUnmounted } from './backup.rules.ts'
import { copyFiles } from './copy-store.ts'
import { readManifest } from './manifest.ts'

const ENDING = '.db'
/** The most backups that are listed. Nobody needs more. */
const SHOWN_MAX = 1000

export const fileOf = (directory: string, name: string) => join(directory, `${name}${ENDING}`)
export const keyFileOf = (directory: string, name: string) => join(directory, `${name}.key`)
/**
 * Returns the name of a backup's file while it is not complete. No command takes such a file for a backup. It holds the relay, because several
 * relays may make backups in one folder at the same time.
 */
export const partOf = (file: string, relayId: string) => `${file}.${relayId.slice(0, 8)}.part`

/** Returns a folder and those that contain it, the innermost first. */
function aroundOf(directory: string): readonly string[] {
  const outer = dirname(directory)
  return outer === directory ? [directory] : [directory, ...aroundOf(outer)]
}

/** Finds where the disk of a folder is mounted. `devices`: the device of each folder around it, the innermost first; null: there is none. */
function mountIn(directory: string, devices: readonly (number | null)[]): BackupPlace {
  const around = aroundOf(directory)
  const first = devices.findIndex((device) => device !== null)
  const outside = devices.findIndex((device, at) => at > first && device !== devices[first])
  return { directory, mountedAt: (outside === -1 ? around.at(-1) : around[outside - 1]) ?? directory }
}

/** Finds where the disk of a folder of backups is mounted. If the folder is missing, it is looked for where it would be made. */
export function placeOf(directory: string): BackupPlace {
  return mountIn(
    directory,
    aroundOf(directory).map((path) => statSync(path, { throwIfNoEntry: false })?.dev ?? null),
  )
}

/**
 * Lists the backups in a folder; none if the folder is missing. A disk that does not answer blocks only this call. Throws if the disk is not
 * mounted on which the last backup was made.
 */
export async function listBackups(directory: string, lastPlace: BackupPlace | null): Promise<readonly BackupFile[]> {
  const devices = await Promise.all(aroundOf(directory).map(async (path) => (await statIfThere(path))?.dev ?? null))
  refuseUnmounted(lastPlace, mountIn(directory, devices))
  const names = await readdir(directory).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return []
    throw error
  })
  const keys = new Set(names.filter((name) => name.endsWith('.key')))
  const files = names.filter((name) => name.endsWith(ENDING)).slice(0, SHOWN_MAX)
  const found = await Promise.all(files.map((file) => lookAt(directory, file, keys)))
  return found.filter((one) => one !== null).toSorted((a, b) => b.madeAtMs - a.madeAtMs || (a.name < b.name ? 1 : -1))
}

async function lookAt(directory: string, file: string, keys: ReadonlySet<string>): Promise<BackupFile | null> {
  const found = await statIfThere(join(directory, file))
  if (found === null || !found.isFile()) return null
  const name = file.slice(0, -ENDING.length)
  return { name, bytes: found.size, madeAtMs: Math.round(found.mtimeMs), hasKey: keys.has(`${name}.key`) }
}

/** Like `removeCopy`, for a thread that must not block. */
export async function discardCopy(file: string): Promise<void> {
  for (const path of copyFiles(file)) await rm(path, { force: true })
}

/** Makes the folder, but not its parent. If the parent is missing, the disk for backups may not be mounted. */
export function openFolder(directory: string): void {
  if (isThere(directory)) {
    if (!statSync(directory).isDirectory()) throw new Error(`${directory} is not a folder`)
    return
  }
  mkdirSync(directory, { mode: FOLDER_MODE })
  closeFolder(directory)
  syncFolder(dirname(directory))
}

/** Removes the files of incomplete backups that a kill of this relay has left. */
export function removeParts(directory: string, relayId: string): void {
  const parts = readdirSync(directory).filter((name) => ['.db', '.key'].some((ending) => name.endsWith(partOf(ending, relayId))))
  for (const name of parts) rmSync(join(directory, name), { force: true })
}

export interface Outliving {
  readonly relayId: string
  readonly keep: number
  /** When the newest backup was made, epoch milliseconds. */
  readonly madeAtMs: number
}

/** Keeps the newest `keep` scheduled backups of a store, and removes the older ones with their keys. Backups of other stores in the folder stay. */
export function removeOutlived(directory: string, { relayId, keep, madeAtMs }: Outliving): void {
  const scheduled = readdirSync(directory).flatMap((file) => (file.endsWith(ENDING) ? [file.slice(0, -ENDING.length)] : []))
  const own = scheduled.filter((name) => mayBeOf(name, relayId) && madeBy(fileOf(directory, name)) === relayId)
  for (const name of outlived(own, keep, madeAtMs)) {
    rmSync(fileOf(directory, name), { force: true })
    rmSync(keyFileOf(directory, name), { force: true })
  }
}

/** Null: the file is no backup. Throws if it cannot be read now, as then it would never be removed. */
function madeBy(file: string): string | null {
  try {
    const db = new Database(file, { readonly: true, fileMustExist: true })
    try {
      return readManifest(db)?.relayId ?? null
    } finally {
      db.close()
    }
  } catch (error) {
    if (!isDamage(error)) throw error
    return null
  }
}
