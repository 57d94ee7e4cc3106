import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeSeededStore } from '../../../support/store/seeded-store.ts'
import { hashTables } from './table-hashes.ts'

/**
 * `npm run -s tables` prints the hash of every table after seeded observations, and `npm run -s tables -- PATH` those of an existing store.
 * If stored rows change on purpose, run `npm run -s tables > test/core/store/sqlite/table-hashes.json`, and say why in the commit.
 */
const given = process.argv[2]
const folder = mkdtempSync(join(tmpdir(), 'parcel-relay-'))
try {
  const path = given ?? join(folder, 'relay.db')
  if (given === undefined) await writeSeededStore(path)
  console.info(JSON.stringify(hashTables(path), null, 2))
} finally {
  rmSync(folder, { recursive: true })
}
