import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { dataOf, type SystemCall } from './strace.ts'

type Change = { readonly kind: 'write'; readonly at: number; readonly data: Buffer } | { readonly kind: 'truncate'; readonly size: number }

interface SimulatedFile {
  durable: Buffer
  /** Changes since the last sync, in order. A power cut keeps any subset of them. */
  pending: readonly Change[]
}

/** Which unsynced changes survive a power cut. Torn: only the first sectors of a write survive. */
export type Loss = 'none kept' | 'all kept' | 'some kept' | 'some torn'
export const LOSSES: readonly Loss[] = ['none kept', 'all kept', 'some kept', 'some torn']

const SECTOR_BYTES = 512

/**
 * Simulates the files of one folder on a disk. Synced changes survive a power cut, and unsynced changes may. A new or deleted file name is durable
 * once its folder is synced. After a failed sync the kernel marks the pages clean, so no later sync writes their changes.
 */
export function createDisk(folder: string) {
  let names = new Map<string, SimulatedFile>()
  let durableNames = new Map(names)
  const isKept = (path: string) => dirname(path) === folder && !path.endsWith('-shm')

  function change(path: string, one: Change): void {
    const file = names.get(path) ?? { durable: Buffer.alloc(0), pending: [] }
    file.pending = [...file.pending, one]
    names.set(path, file)
  }

  return {
    apply({ name, path, args, result }: SystemCall): void {
      if (name === 'fsync' || name === 'fdatasync') {
        if (path === folder && result === 0) durableNames = new Map(names)
        const file = names.get(path)
        if (file === undefined) return
        if (result === 0) file.durable = file.pending.reduce(changed, file.durable)
        file.pending = []
        return
      }
      if (result < 0) return
      const opened = name === 'openat' ? dataOf(args).toString('latin1') : path
      if (!isKept(opened)) return
      if (name === 'openat' && args.includes('O_CREAT') && !names.has(opened)) names.set(opened, { durable: Buffer.alloc(0), pending: [] })
      if (name === 'pwrite64') change(path, { kind: 'write', at: Number(args.slice(args.lastIndexOf(',') + 1)), data: dataOf(args) })
      if (name === 'write') change(path, { kind: 'write', at: 0, data: dataOf(args) })
      if (name === 'ftruncate') change(path, { kind: 'truncate', size: Number(args.slice(args.lastIndexOf(',') + 1)) })
      if (name === 'unlink') {
        names = new Map(names)
        names.delete(path)
      }
    },
    /** Writes to the folder `into` the files that a power cut at this moment would leave. */
    image(into: string, loss: Loss, random: () => number): void {
      rmSync(into, { recursive: true, force: true })
      mkdirSync(into)
      for (const [path, file] of loss === 'all kept' ? names : durableNames) {
        writeFileSync(join(into, basename(path)), survivors(file.pending, loss, random).reduce(changed, file.durable))
      }
    },
  }
}

function survivors(pending: readonly Change[], loss: Loss, random: () => number): readonly Change[] {
  if (loss === 'none kept') return []
  if (loss === 'all kept') return pending
  const kept = pending.filter(() => random() < 0.5)
  return loss === 'some kept' ? kept : kept.map((one) => torn(one, random))
}

function torn(one: Change, random: () => number): Change {
  if (one.kind === 'truncate' || one.data.length <= SECTOR_BYTES || random() < 0.5) return one
  const sectors = Math.floor(one.data.length / SECTOR_BYTES)
  return { ...one, data: one.data.subarray(0, SECTOR_BYTES * Math.floor(random() * sectors)) }
}

function changed(content: Buffer, one: Change): Buffer {
  if (one.kind === 'truncate') return Buffer.concat([content.subarray(0, one.size), Buffer.alloc(Math.max(0, one.size - content.length))])
  const grown =
    content.length >= one.at + one.data.length
      ? Buffer.from(content)
      : Buffer.concat([content, Buffer.alloc(one.at + one.data.length - content.length)])
  one.data.copy(grown, one.at)
  return grown
}

/** Opens a store as after a restart, and returns its pushes. `damage`: why the store cannot be read, or what its integrity check found. */
export function readStore(path: string): { readonly bodies: ReadonlySet<string>; readonly damage: string | null } {
  let db: Database.Database | null = null
  try {
    db = new Database(path)
    db.pragma('synchronous = OFF')
    const damage = String(db.pragma('integrity_check', { simple: true }))
    const hasInbox = db.prepare("SELECT count(*) FROM sqlite_master WHERE name = 'inbox'").pluck().get() === 1
    const rows = hasInbox ? db.prepare('SELECT body FROM inbox').pluck().all() : []
    return { bodies: new Set(rows.map((body) => (Buffer.isBuffer(body) ? body.toString() : ''))), damage: damage === 'ok' ? null : damage }
  } catch (error) {
    return { bodies: new Set(), damage: String(error) }
  } finally {
    db?.close()
  }
}
