import { closeSync, fdatasyncSync, openSync, readFileSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { cpus, loadavg, release, totalmem } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { median } from './load/percentiles.ts'

/** The machine the figures were measured on. Machines differ most in the time of a sync to disk. */
export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGb: number
  readonly kernel: string
  readonly node: string
  readonly sqlite: string
  readonly libraries: Readonly<Record<string, string>>
  readonly fileSystem: string
  readonly syncMs: number
  readonly loadAverage: number
}

const FILE_SYSTEMS: Readonly<Record<number, string>> = { 61267: 'ext4', 16914836: 'tmpfs', 1481003842: 'xfs', 2435016766: 'btrfs' }
const LIBRARIES = ['koa', '@koa/router', 'raw-body', 'kysely', 'better-sqlite3']
const SYNCS = 50

export function lookAtMachine(folder: string): Machine {
  const memory = new Database(':memory:')
  const sqlite = String(memory.prepare('SELECT sqlite_version()').pluck().get())
  memory.close()
  const { type } = statfsSync(folder)
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    node: process.version,
    sqlite,
    libraries: Object.fromEntries(LIBRARIES.map((name) => [name, versionOf(name)])),
    fileSystem: FILE_SYSTEMS[type] ?? `0x${type.toString(16)}`,
    syncMs: syncMs(folder),
    loadAverage: Number((loadavg()[0] ?? 0).toFixed(2)),
  }
}

function versionOf(library: string): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL(`../node_modules/${library}/package.json`, import.meta.url), 'utf8'))
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : 'unknown'
}

/** The median time to overwrite and sync one page, as in a WAL that no longer grows. */
function syncMs(folder: string): number {
  const path = join(folder, 'sync')
  const file = openSync(path, 'w')
  const page = Buffer.alloc(4096, 1)
  const writeAll = (after: () => void) => {
    for (let at = 0; at < SYNCS; at++) {
      writeSync(file, page, 0, page.length, at * page.length)
      after()
    }
  }
  writeAll(() => {})
  fdatasyncSync(file)
  const times: number[] = []
  let startMs = performance.now()
  writeAll(() => {
    fdatasyncSync(file)
    times.push(performance.now() - startMs)
    startMs = performance.now()
  })
  closeSync(file)
  rmSync(path)
  return Number(median(times).toFixed(2))
}
