import { existsSync, linkSync, lstatSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { inspectSqlite } from '../../../../src/upkeep/check/inspect-sqlite.ts'
import { sqliteMoves } from '../../../../src/upkeep/moving/sqlite-moves.ts'
import { type RestorePorts, restoreBackup } from '../../../../src/upkeep/restore/restore-backup.ts'
import { compactStore } from '../../../../src/upkeep/retention/compact.ts'
import { sqlite } from '../../../../src/upkeep/sqlite-engine.ts'
import { OPERATOR } from '../../../support/relay/operator.ts'
import { temporaryFolder } from '../../../support/runner/temporary.ts'
import { moveStore, seededPlace } from '../../../support/store/moving.ts'
import { hashTables } from './table-hashes.ts'

/** A store, and a symbolic link to it in another folder. */
async function linked() {
  const { place: path } = await seededPlace(sqlite)
  const link = join(temporaryFolder(), 'linked.db')
  symlinkSync(path, link)
  return { path, link }
}

const order = {
  file: 'first.db',
  last: null,
  tombstones: null,
  forgetsErasures: false,
  isConfirmed: true,
  isOtherRelay: false,
  nowMs: 0,
  by: OPERATOR,
}
const noPorts: RestorePorts = { proveKeys: () => Promise.reject(new Error('not reached')), onStep: () => undefined }

/** All commands that need a store for themselves. */
const COMMANDS: readonly (readonly [name: string, run: (place: string) => Promise<unknown>])[] = [
  ['prune --compact', compactStore],
  ['restore', (store) => restoreBackup({ ...order, store }, noPorts)],
  ['move-store --undo', (place) => sqliteMoves.undo(place, 0)],
  ['serve', (place) => sqlite.openWriteStore(place)],
]

test.each(COMMANDS)('%s through a link finds the lock of the relay that uses the file', async (_name, run) => {
  const { path, link } = await linked()
  const store = await sqlite.openWriteStore(path)
  onTestFinished(() => store.close())
  await expect(run(link)).rejects.toThrow(`a relay is already running on ${path}`)
  expect(inspectSqlite(link)).toMatchObject({ state: 'in_use', path })
  expect((await sqliteMoves.holdUnused(link)).usedBy).not.toBeNull()
})

test('a store compacted through a link stays where it is, beside its lock and tombstones', async () => {
  const { path, link } = await linked()
  const before = hashTables(path)
  expect(await compactStore(link)).toMatchObject({ kind: 'done' })
  expect([hashTables(path), lstatSync(link).isSymbolicLink(), readdirSync(join(link, '..'))]).toEqual([before, true, ['linked.db']])
  expect(existsSync(`${path}.tombstones`)).toBe(true)
})

test('a moved store, and one with a second name, are not compacted', async () => {
  const { path } = await linked()
  linkSync(path, `${path}.second`)
  await expect(compactStore(path)).rejects.toThrow('has 2 names')
  const from = await seededPlace(sqlite)
  const to = { engine: sqlite, place: join(temporaryFolder(), 'new.db') }
  await moveStore(from, to)
  await expect(compactStore(from.place)).rejects.toThrow(`was moved to ${to.place}`)
  expect(existsSync(`${from.place}.compact`)).toBe(false)
})
