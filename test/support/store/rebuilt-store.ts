import { expect } from 'vitest'
import { type RebuildReport, rebuiltBy } from '../../../src/upkeep/rebuild/rebuild.rules.ts'
import { storedRows } from './stored-rows.ts'
import type { openStore } from './write-side.ts'

type Opened = Pick<Awaited<ReturnType<typeof openStore>>, 'writes' | 'reads' | 'now'>

export interface RebuildOrder {
  readonly dryRun?: boolean
  /** The parcels to rebuild. By default all. */
  readonly parcels?: readonly number[]
  /** The number of pushes in a batch. */
  readonly limit?: number
  /** Called between batches. */
  readonly meanwhile?: () => Promise<unknown>
}

/** Rebuilds a store to the end, and returns the report. */
export async function rebuildStore({ writes, reads, now }: Opened, order: RebuildOrder = {}): Promise<RebuildReport> {
  const { dryRun = false, parcels = null, limit = 100, meanwhile } = order
  const job = await writes.startJob({ task: { kind: 'rebuild', dryRun, parcels, total: 0 }, by: 'admin', nowMs: now() })
  while (!(await writes.workOnJobs({ limit, nowMs: now() })).isDone) await meanwhile?.()
  const ended = await reads.findJob(job?.jobId ?? 0)
  expect(ended?.state).toBe('done')
  const report = ended === null ? null : rebuiltBy(ended)
  if (report === null) throw new Error('the rebuild reports nothing')
  return report
}

/** All rows of tables, as sorted text. Versions of parcels, which rise with each change, are left out. */
export async function rowsOf(place: string, tables: readonly string[]): Promise<Readonly<Record<string, readonly string[]>>> {
  const all = await Promise.all(tables.map((table) => storedRows<Record<string, unknown>>(place, `select * from ${table}`)))
  return Object.fromEntries(
    tables.map((table, at) => [table, (all[at] ?? []).map(({ version: _version, ...row }) => JSON.stringify(row)).sort()]),
  )
}
