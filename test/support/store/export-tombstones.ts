import { readFileSync, writeFileSync } from 'node:fs'
import { storedRows } from './stored-rows.ts'

const MANUAL = new URL('../../../docs/operating.md', import.meta.url)

/** Writes the tombstones of a database to a file, with the query that the manual gives to operators. */
export async function exportTombstones(url: string, file: string): Promise<void> {
  const [, query] = /```sql\n([\s\S]*?'tombstone-key'[\s\S]*?)\n```/.exec(readFileSync(MANUAL, 'utf8')) ?? []
  if (query === undefined) throw new Error('the manual does not say how to export tombstones')
  const lines = await storedRows<{ readonly json_build_object: object }>(url, query)
  writeFileSync(file, lines.map((row) => `${JSON.stringify(row.json_build_object)}\n`).join(''))
}
