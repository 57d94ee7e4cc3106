import { readFileSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { isThere } from '../../../regular-file.ts'
import { leaveMarker } from '../file.ts'
import { syncFolder, writeWhole } from '../whole-file.ts'
import { copyFiles } from './copy-store.ts'

/** The suffixes of the files that hold the data of a store. */
const DATA = ['', '-wal', '-shm', '-journal']
/** While this file exists, a restore is replacing the files of the store, and no relay opens the store. */
const markOf = (path: string) => `${path}.restoring`
/** The path at which a restore prepares the new store, before it replaces the store at `path`. */
export const preparedOf = (path: string) => `${path}.restored`
export const preparedKeyOf = (path: string) => `${path}.restored.key`

export function refuseHalfRestored(path: string): void {
  if (!isThere(markOf(path))) return
  throw new Error(
    `store: a restore of ${path} was interrupted. Nothing is lost: run the same "parcel-relay restore" again, and it finishes. Then start the relay.`,
  )
}

/**
 * Replaces a store with the prepared one, and keeps the old store beside it under another name. If the process is killed meanwhile, a later
 * call of `finishSwap` does the rest. Returns the new path of the old store; null: there was no old store.
 */
export function swapStore(path: string, ending: string): string | null {
  writeWhole(markOf(path), `${ending}\n`)
  return finishSwap(path)?.aside ?? null
}

/**
 * Finishes a restore that was interrupted while it replaced the files. Returns null if no restore was interrupted. `aside`: the new path of
 * the old store; null: there was no old store.
 */
export function finishSwap(path: string): { readonly aside: string | null } | null {
  if (!isThere(markOf(path))) return null
  const aside = `${path}.${readFileSync(markOf(path), 'utf8').trim()}`
  // As long as the prepared file exists, the store's own name still belongs to the old store.
  if (isThere(preparedOf(path))) {
    for (const suffix of DATA) moveAside(`${path}${suffix}`, `${aside}${suffix}`)
    if (isThere(preparedKeyOf(path))) {
      moveAside(`${path}.key`, `${aside}.key`)
      renameSync(preparedKeyOf(path), `${path}.key`)
    }
    syncFolder(dirname(path))
    renameSync(preparedOf(path), path)
    syncFolder(dirname(path))
  }
  leaveMarker(path)
  rmSync(markOf(path))
  syncFolder(dirname(path))
  return { aside: isThere(aside) ? aside : null }
}

function moveAside(from: string, to: string): void {
  if (isThere(from) && !isThere(to)) renameSync(from, to)
}

/** Keeps the prepared store while a restore is replacing the files: it may be the only store that is left under its name. */
export function removePrepared(path: string): void {
  if (isThere(markOf(path))) return
  for (const left of [...copyFiles(preparedOf(path)), preparedKeyOf(path), `${preparedKeyOf(path)}.new`]) rmSync(left, { force: true })
}

/** Returns an unused ending for the name of the old store, even if the last restore was less than a second ago. */
export function asideEnding(path: string, nowMs: number): string {
  const ending = `before-restore-${new Date(nowMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
  return isThere(`${path}.${ending}`) ? asideEnding(path, nowMs + 1000) : ending
}
