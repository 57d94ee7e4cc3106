import { lchownSync, lstatSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { StoreSettings } from '../../core/config/config.ts'

/**
 * Does work on the store of a stopped relay. If root does it, gives the files of the store that belong to root afterwards to the owner of the store's folder, as the relay may run as
 * that user and could not open them. After a kill the same command, run again, does so.
 */
export async function asOwnerOfStore<Done>({ store }: StoreSettings, work: () => Promise<Done>): Promise<Done> {
  try {
    return await work()
  } finally {
    if (store.engine === 'sqlite' && process.geteuid?.() === 0) handOver(store.path)
  }
}

function handOver(path: string): void {
  for (const place of new Set([path, resolved(path)])) {
    const folder = dirname(place)
    const owner = statSync(folder, { throwIfNoEntry: false })
    if (owner === undefined || owner.uid === 0) continue
    const names = readdirSync(folder).filter((name) => name === basename(place) || /^[.-]/.test(rest(name, basename(place))))
    for (const file of names.map((name) => join(folder, name))) if (lstatSync(file).uid === 0) lchownSync(file, owner.uid, owner.gid)
  }
}

/** What follows the name of the store in the name of a file beside it; empty: the file is not the store's. */
function rest(name: string, store: string): string {
  return name.startsWith(store) ? name.slice(store.length) : ''
}

/** Follows a symbolic link; a path that leads nowhere stays. */
function resolved(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
