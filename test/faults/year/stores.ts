import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Sections } from '../../support/relay/relay.ts'
import type { SimulatedTime } from '../../support/simulation/simulated-time.ts'
import { exportTombstones } from '../../support/store/export-tombstones.ts'
import { withClient } from '../../support/store/postgres-client.ts'
import { copyDatabase, createDatabase } from '../../support/store/postgres-database.ts'
import { storedNumber } from '../../support/store/stored-rows.ts'
import type { RelayOfYear } from './relay.ts'

export interface KeptFile {
  readonly name: string
  readonly text: () => string
  /** When the backup was made, or null for a file of the current store. */
  readonly madeAtMs: number | null
}

export interface StoreOfYear {
  /** The path of the file, or the URL of the database. */
  place(): string
  sections(): Sections
  /** Whether erased data is gone from the files of the store as soon as it is erased. */
  readonly isCleanAtOnce: boolean
  /** On an engine without scheduled backups: makes the copy that `restore` will use. */
  keepForRestore(relay: RelayOfYear): Promise<void>
  /** Restores the store while the relay is stopped. Returns the time of the restored state. */
  restore(relay: RelayOfYear, lastSequence: number): Promise<number>
  /** Deletes stores that a restore has replaced. They may contain erased data, so the answer to an erasure names them. */
  removeReplaced(stores: readonly string[]): void
  tend(): Promise<void>
  /** Returns the size of the stopped store without its tallies, which are kept for 400 days and so still grow after a year. */
  bytes(): Promise<number>
  files(): readonly KeptFile[]
}

export const BACKUP = { cron: '15 3 * * *', hour: 3, minute: 15 } as const
const BACKUPS_KEPT = 5
/** The second newest backup is restored. */
const RESTORED = -2

export function sqliteStore(folder: string): StoreOfYear {
  const path = join(folder, 'relay.db')
  const directory = join(folder, 'backups')
  const backups = () =>
    readdirSync(directory)
      .filter((name) => name.endsWith('.db'))
      .sort()
  return {
    place: () => path,
    sections: () => ({ backup: { cron: BACKUP.cron, directory, keep: BACKUPS_KEPT } }),
    isCleanAtOnce: true,
    keepForRestore: async () => undefined,
    async restore(relay) {
      const name = backups().at(RESTORED) ?? ''
      await relay.command('restore', join(directory, name), '--yes', '--json')
      return timeOf(name)
    },
    removeReplaced(stores) {
      for (const store of stores) {
        const replaced = readdirSync(folder).filter((name) => name.startsWith(basename(store)))
        for (const name of replaced) rmSync(join(folder, name))
      }
    },
    tend: async () => undefined,
    bytes: async () => statSync(path).size - (await storedNumber(path, "select sum(pgsize) from dbstat where name like 'tally%'")),
    files: () => [...filesIn(folder, () => null), ...filesIn(directory, timeOf)],
  }
}

function timeOf(name: string): number {
  const [, date = '', hours = '', minutes = '', seconds = ''] = /^scheduled-(\d{8})T(\d\d)(\d\d)(\d\d)/.exec(name) ?? []
  return Date.parse(`${date.slice(0, 4)}-${date.slice(4, 6)}-${date.slice(6)}T${hours}:${minutes}:${seconds}Z`)
}

function filesIn(folder: string, madeAtMs: (name: string) => number | null): readonly KeptFile[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => ({ name, text: () => readFileSync(join(folder, name), 'latin1'), madeAtMs: madeAtMs(name) }))
}

/** PostgreSQL has its own tools for backups. Here the backup is a copy of the database, made while the relay is stopped. */
export async function postgresStore(time: SimulatedTime, folder: string): Promise<StoreOfYear> {
  let { url } = await createDatabase('nothing')
  let kept: { readonly url: string; readonly atMs: number } | null = null
  return {
    place: () => url,
    sections: () => ({ store: url }),
    isCleanAtOnce: false,
    async keepForRestore(relay) {
      await relay.stop()
      kept = { url: await copyDatabase(url), atMs: time.now() }
      await relay.start()
    },
    async restore(relay, lastSequence) {
      if (kept === null) throw new Error('there is no copy to restore')
      const tombstones = join(folder, 'relay.tombstones')
      await exportTombstones(url, tombstones)
      url = kept.url
      await relay.command('restore', '--mark', '--last', String(lastSequence), '--tombstones', tombstones)
      return kept.atMs
    },
    removeReplaced: () => undefined,
    // The simulated year takes only minutes, so autovacuum runs too rarely.
    tend: () => withClient(url, async (client) => void (await client.query('vacuum analyze'))),
    bytes: () => storedNumber(url, "select pg_database_size(current_database()) - pg_total_relation_size('tally')"),
    files: () => [],
  }
}
