import { chmodSync, statSync } from 'node:fs'
import { open, rename, statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { refuseDamage } from '../../core/store/sqlite/file.ts'
import { holdStore } from '../../core/store/sqlite/lock.ts'
import { makeFile } from '../../core/store/sqlite/whole-file.ts'
import { isThere } from '../../regular-file.ts'
import { removeCopy } from '../backups/copy-store.ts'
import { noteOverwritten } from '../erasure/clean-storage.ts'
import { readMark } from '../moving/sqlite-move-mark.ts'
import { refuseMoved } from '../moving/store-moves.rows.ts'
import { refuseHalfRestored } from '../restore/swap-store.ts'

export type Compacted =
  | { readonly kind: 'done'; readonly beforeBytes: number; readonly afterBytes: number }
  | { readonly kind: 'no_room'; readonly neededBytes: number; readonly freeBytes: number }

const MARGIN_BYTES = 16 * 1024 * 1024

/**
 * Makes the file of a store smaller by the pages that it does not use. Throws `StoreInUse` while a relay uses the store. The store is copied,
 * and the copy is on the disk before it replaces the store. So after a crash either the old store or the copy is there, undamaged.
 */
export async function compactStore(given: string): Promise<Compacted> {
  const { path, lock } = holdStore(given, refuseUnfit)
  const copy = `${path}.compact`
  try {
    removeCopy(copy)
    const neededBytes = usedBytesOf(path) + MARGIN_BYTES
    const { bavail, bsize } = await statfs(dirname(resolve(path)))
    if (bavail * bsize < neededBytes) return { kind: 'no_room', neededBytes, freeBytes: bavail * bsize }
    const beforeBytes = statSync(path).size
    copyWithoutFreePages(path, copy)
    await putInPlace(copy, path)
    return { kind: 'done', beforeBytes, afterBytes: statSync(path).size }
  } finally {
    removeCopy(copy)
    lock.release()
  }
}

/** Throws unless the file is a store that a relay would open, and has no other name, under which the old file would stay. */
function refuseUnfit(path: string): void {
  if (!isThere(path)) throw new Error(`there is no store at ${path}`)
  refuseHalfRestored(path)
  refuseDamage(path)
  const names = statSync(path).nlink
  if (names > 1) throw new Error(`store: ${path} has ${names} names (hard links). Give it one name first. Nothing was changed.`)
  const db = new Database(path, { readonly: true, fileMustExist: true })
  try {
    refuseMoved(readMark(db), path)
  } finally {
    db.close()
  }
}

function usedBytesOf(path: string): number {
  const db = new Database(path, { fileMustExist: true })
  try {
    const number = (name: string) => Number(db.pragma(name, { simple: true }))
    return (number('page_count') - number('freelist_count')) * number('page_size')
  } finally {
    db.close()
  }
}

function copyWithoutFreePages(path: string, copy: string): void {
  makeFile(copy)
  const db = new Database(path, { fileMustExist: true })
  try {
    db.prepare('vacuum into ?').run(copy)
    db.pragma('wal_checkpoint(TRUNCATE)')
    noteOverwritten(copy)
  } finally {
    db.close()
  }
}

/**
 * Puts the copy in place of the store. Throws if the store has a WAL, because SQLite would apply the WAL to the copy. There is a WAL while another
 * program has the store open.
 */
async function putInPlace(copy: string, path: string): Promise<void> {
  if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0)
    throw new Error(`another program has ${path} open: close it first. Nothing was changed`)
  chmodSync(copy, statSync(path).mode)
  await sync(copy)
  await rename(copy, path)
  await sync(dirname(resolve(path)))
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
