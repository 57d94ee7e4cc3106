import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { makeBackup } from '../../../../src/upkeep/backups/make-backup.ts'
import { filesLeftAt, storesLeftBeside } from '../../../../src/upkeep/moving/sqlite-move-mark.ts'
import { inspectOld } from '../../../../src/upkeep/restore/inspect-stores.ts'
import { type RestoreOrder, type RestorePorts, restoreBackup } from '../../../../src/upkeep/restore/restore-backup.ts'
import { sqlite } from '../../../../src/upkeep/sqlite-engine.ts'
import { addEndpoint, endpointOf } from '../../../support/delivery/stored-endpoint.ts'
import { OPERATOR } from '../../../support/relay/operator.ts'
import { writeConfig } from '../../../support/relay/relay.ts'
import { DAY_MS, HOUR_MS, NO_CARRIER, NOON } from '../../../support/runner/constants.ts'
import { seeded } from '../../../support/runner/seeded.ts'
import { shipped } from '../../../support/runner/shipped.ts'
import { temporaryFolder } from '../../../support/runner/temporary.ts'
import { testWith } from '../../../support/runner/test-with.ts'
import { seededPlace } from '../../../support/store/moving.ts'
import { changeStoredRows, storedNumber, storedRows } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

const KEY = `${Buffer.alloc(32, 7).toString('base64')}\n`
const FILE = '.tombstones'
const erased = (mark: string) => `insert into tombstone (mark, parcel_id, erased_at_ms) values ('${mark}', 1, 1000)`
const keep = "insert or replace into setting (name, value) values ('tombstone-key', cast('sealed' as blob))"

/** A store with the tombstones `before` and `since`, of which a backup holds only the first. `prepare` changes it before the backup. */
async function backedUp(prepare: (place: string) => Promise<void> = async () => undefined) {
  const { place } = await seededPlace(sqlite)
  await prepare(place)
  await changeStoredRows(place, 'delete from tombstone')
  await changeStoredRows(place, keep)
  await changeStoredRows(place, erased('before'))
  for (const name of ['token-key', 'token-key-previous', 'relay-id'])
    await changeStoredRows(place, `insert or replace into setting (name, value) values ('${name}', x'00')`)
  const directory = temporaryFolder()
  writeFileSync(`${place}.key`, KEY)
  rmSync(`${place}${FILE}`, { force: true })
  await (await sqlite.openWriteStore(place)).close()
  copyFileSync(place, `${place}.backup`)
  const order = {
    name: 'first',
    directory,
    copy: `${place}.backup`,
    madeAtMs: 1000,
    version: '1',
    keys: [],
    sequence: 0,
    keep: 2,
    lastPlace: null,
  }
  for (const work = makeBackup({ ...order, keyFile: `${place}.key` }); work.next().done !== true; );
  await changeStoredRows(place, erased('since'))
  await (await sqlite.openWriteStore(place)).close()
  return { place, file: join(directory, 'first.db') }
}

const ports: RestorePorts = {
  onStep: () => undefined,
  proveKeys: async ({ tombstoneKeys }) => ({ otherKeys: [], lostKeys: [], tombstoneKey: tombstoneKeys[0] ?? null }),
}

function restore(store: string, file: string, more: Partial<RestoreOrder> = {}) {
  const order = { last: null, tombstones: null, forgetsErasures: false, isConfirmed: true, isOtherRelay: false, nowMs: 0, by: OPERATOR }
  return restoreBackup({ ...order, store, file, ...more }, ports)
}

/** What can have happened to the file of tombstones. */
const DAMAGES: readonly (readonly [what: string, damage: (text: string) => string])[] = [
  ['emptied', () => ''],
  ['of which only the newest line is left', (text) => text.split('\n').slice(-2).join('\n')],
  ['whose last line is cut off', (text) => text.slice(0, -20)],
  ['of which only the key is left', (text) => `${text.split('\n')[0]}\n`],
]

test.each(DAMAGES)('a restore takes what the old store knows of erasures besides a file %s', async (_what, damage) => {
  const { place, file } = await backedUp()
  writeFileSync(`${place}${FILE}`, damage(readFileSync(`${place}${FILE}`, 'utf8')))
  await restore(place, file)
  const store = await sqlite.openWriteStore(place)
  const missed = await store.missedTombstones()
  await store.close()
  expect([missed.sealedKey, missed.tombstones.map(({ mark }) => mark)]).toEqual(['sealed', ['since']])
})

test('a restore refuses tombstones that cannot be read, or have no key, and changes nothing', async () => {
  const { place, file } = await backedUp()
  const whole = readFileSync(`${place}${FILE}`, 'utf8')
  const refused = async (text: string, why: string, more: Partial<RestoreOrder> = {}) => {
    writeFileSync(`${place}${FILE}`, text)
    const before = readFileSync(place)
    await expect(restore(place, file, more)).rejects.toThrow(why)
    expect([readFileSync(place).equals(before), readFileSync(`${place}${FILE}`, 'utf8')]).toEqual([true, text])
  }
  await refused(whole.replace('{"mark"', '{mark'), `line 2 of ${place}${FILE} cannot be read`)
  for (const suffix of ['-wal', '-shm']) rmSync(`${place}${suffix}`, { force: true })
  writeFileSync(place, 'damaged, so nobody knows what it held')
  await refused('', '--forget-erasures', { last: 1000 })
  await refused(whole.split('\n').slice(1).join('\n'), '--forget-erasures', { last: 1000 })
  const given = join(temporaryFolder(), 'given')
  renameSync(`${place}${FILE}`, `${place}.kept`)
  writeFileSync(given, whole.slice(0, -20))
  await expect(restore(place, file, { last: 1000, tombstones: given })).rejects.toThrow(`the last line of ${given} is cut off`)
  await restore(place, file, { last: 1000, forgetsErasures: true })
  expect(await storedNumber(place, 'select count(*) from tombstone')).toBe(1)
})

test('a number that leaves no room for ids is refused, and changes nothing', async () => {
  const { place, file } = await backedUp()
  rmSync(place)
  for (const last of [999_999_999_999_999, 60_000_000_000_000]) {
    const found = restore(place, file, { last })
    await expect(found, `--last ${last}`).rejects.toThrow('a relay counts to 100000000000000')
    expect([existsSync(place), existsSync(`${place}.restored`)]).toEqual([false, false])
  }
  await restore(place, file, { last: 1_000_000_000_000 })
  expect(await storedNumber(place, "select max(seq) from sqlite_sequence where name = 'delivery'")).toBeLessThan(1e14)
})

test('the key of a backup is found by its name, whatever its ending, and is never the backup', async () => {
  const { place, file } = await backedUp()
  const named = join(temporaryFolder(), 'first.sqlite')
  const bare = join(temporaryFolder(), 'first')
  const link = join(temporaryFolder(), 'newest.db')
  for (const copy of [named, bare]) copyFileSync(file, copy)
  for (const copy of [named, `${bare}.`]) copyFileSync(file.replace('.db', '.key'), copy.replace(/\.\w*$/, '.key'))
  symlinkSync(file, link)
  const byKeyName = join(temporaryFolder(), 'first.key')
  copyFileSync(file, byKeyName)
  for (const backup of [named, bare, link, byKeyName]) {
    const seen: unknown[] = []
    const other = `${Buffer.alloc(32, 9).toString('base64')}\n`
    writeFileSync(`${place}.key`, other)
    const order = { last: null, tombstones: null, forgetsErasures: false, isConfirmed: true, isOtherRelay: false, nowMs: 0, by: OPERATOR }
    const proveKeys: RestorePorts['proveKeys'] = (proof) => {
      seen.push(proof.keyFile)
      return ports.proveKeys(proof)
    }
    await restoreBackup({ ...order, store: place, file: backup }, { ...ports, proveKeys })
    const isFound = backup !== byKeyName
    expect([basename(backup), readFileSync(`${place}.key`, 'utf8')]).toEqual([basename(backup), isFound ? KEY : other])
    expect(seen).toEqual([Buffer.from(isFound ? KEY : other, 'base64')])
  }
  writeFileSync(file.replace('.db', '.key'), '')
  await expect(restore(place, file)).rejects.toThrow('first.key does not hold a key')
})

test('S17: a backup with any changed byte is refused, and changes nothing', async () => {
  const { place, file } = await backedUp()
  const whole = readFileSync(file)
  const before = readFileSync(place)
  await restore(place, file)
  writeFileSync(place, before)
  const random = seeded(3)
  for (let flip = 0; flip < 200; flip++) {
    const bytes = Buffer.from(whole)
    const at = Math.floor(random() * bytes.byteLength)
    bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(random() * 8))
    writeFileSync(file, bytes)
    await expect(restore(place, file), `a bit of byte ${at}`).rejects.toThrow()
  }
  expect([readFileSync(place).equals(before), existsSync(`${place}.restored`)]).toEqual([true, false])
})

/** A store of a relay that was started before the restore, and of whose erasures since nobody has told. */
async function startedBefore() {
  const { place, file } = await backedUp()
  const copy = join(temporaryFolder(), 'copy.tombstones')
  renameSync(`${place}${FILE}`, copy)
  await changeStoredRows(place, 'delete from tombstone')
  await changeStoredRows(place, "update setting set value = x'0badcafe' where name = 'relay-id'")
  return { place, file, copy }
}

test('a backup of another relay is restored only if an operator says so', async () => {
  const { place, file } = await startedBefore()
  await expect(restore(place, file)).rejects.toThrow(/--other-relay, with --last N and either --tombstones FILE or --forget-erasures/)
})

test('a restore over the store of another relay asks for the same as one without a store', async () => {
  const { place, file, copy } = await startedBefore()
  const before = readFileSync(place)
  const refused = (more: Partial<RestoreOrder>) =>
    restore(place, file, { isOtherRelay: true, ...more }).then(
      () => 'restored',
      (error: Error) => ['--last N', '--tombstones FILE', 'Nothing was changed'].map((words) => error.message.includes(words)),
    )
  expect(await refused({})).toEqual([true, true, true])
  expect(await refused({ tombstones: copy })).toEqual([true, false, true])
  expect(await refused({ last: 1000 })).toEqual([false, true, true])
  expect(readFileSync(place).equals(before)).toBe(true)
  const endpoints = await storedNumber(place, 'select count(*) from endpoint')
  const done = await restore(place, file, { isOtherRelay: true, isConfirmed: false, last: 9e8, tombstones: copy })
  expect(done).toMatchObject({ kind: 'restored', erasedSince: 1, restore: { delivered: null, to: 1e9 } })
  // Nobody knows the ids of deliveries either, so they are assumed as high as without a store.
  const ids = await storedNumber(place, "select seq from sqlite_sequence where name = 'delivery'")
  expect([endpoints > 1, ids]).toEqual([true, (Math.floor((9e8 * endpoints) / 1e9) + 1) * 1e9])
})

test('a restore never takes the tombstones beside the store of another relay for its own', async () => {
  const { place, file, copy } = await startedBefore()
  copyFileSync(copy, `${place}${FILE}`)
  const order = { isOtherRelay: true, last: 1000 }
  for (const more of [{}, { tombstones: copy }])
    await expect(restore(place, file, { ...order, ...more })).rejects.toThrow(`${place}${FILE} lies beside the store of another relay`)
  const done = await restore(place, file, { ...order, forgetsErasures: true })
  expect(done).toMatchObject({ kind: 'restored', erasedSince: 0, restore: { delivered: null } })
  expect([existsSync(`${place}${FILE}`), done.aside !== null && existsSync(`${done.aside}${FILE}`)]).toEqual([false, true])
})

test('the word that the backup may be of another relay changes nothing for its own store', async () => {
  const { place, file } = await backedUp()
  expect(await restore(place, file, { isOtherRelay: true })).toMatchObject({ erasedSince: 1, restore: { delivered: expect.any(Number) } })
})

test('the keys of tokens do not come back with a backup, so ended tokens stay ended', async () => {
  const { place, file } = await backedUp()
  const keys = async () => (await storedRows(place, "select name from setting where name like 'token-key%'")).length
  expect(await keys()).toBe(2)
  await restore(place, file)
  expect(await keys()).toBe(0)
})

test('7.1: after a restore, an endpoint began when it did, and is sent what happened since', async () => {
  const began = NOON + DAY_MS
  let id = ''
  const { place, file } = await backedUp(async (store) => {
    const { writes, reads } = await openStore(began, sqlite, store)
    id = (await addEndpoint(writes, began, { name: 'restored' })).id
    // Only the last one to close a store brings its file up to date, and the backup is a copy of that file.
    await reads.close()
    await writes.close()
  })
  await changeStoredRows(place, 'delete from endpoint')
  await restore(place, file)
  expect(await storedNumber(place, `select began_at_ms from endpoint where id = ${id}`)).toBe(began)
  const { writes, poll, now } = await openStore(began + HOUR_MS, sqlite, place)
  const times = [began - 1000, began].map((atMs) => new Date(atMs).toISOString())
  const statuses = times.map((eventTimestamp) => ({ eventTimestamp, status: 'TerminalArrived' }))
  await poll({ asked: '76000001', trackingIds: ['76000001'], language: 'en', statuses })
  const sent = await endpointOf(writes, id, now()).take()
  expect(sent.map(({ body }) => JSON.parse(String(body)))).toEqual([expect.objectContaining({ eventTime: times[1] })])
})

/** A store of a relay that was killed: its newest row is only in the log. */
async function killed() {
  const { place: running, file } = await backedUp()
  const place = join(temporaryFolder(), 'relay.db')
  const db = new Database(running)
  db.pragma('wal_autocheckpoint = 0')
  db.exec(erased('in-the-log'))
  for (const suffix of ['', '-wal']) copyFileSync(`${running}${suffix}`, `${place}${suffix}`)
  db.close()
  return { place, file }
}

/** Which files in the folder of a store hold this word. */
function holding(place: string, word: string): readonly string[] {
  const folder = dirname(place)
  return readdirSync(folder).filter((name) => readFileSync(join(folder, name)).includes(word) && !name.endsWith(FILE))
}

test('a restore folds the log of a killed store into the file that it keeps', async () => {
  const { place, file } = await killed()
  expect(holding(place, 'in-the-log')).toEqual(['relay.db-wal'])
  const { aside, asideLogs } = await restore(place, file)
  expect([asideLogs, holding(place, 'in-the-log')]).toEqual([[], [basename(aside ?? '')]])
  expect(storesLeftBeside(place)).toEqual([aside])
  rmSync(aside ?? '')
  expect(storesLeftBeside(place)).toEqual([])
})

test('a log that a restore cannot fold is named as long as it is there, also without its store', async () => {
  const { place, file } = await killed()
  const reader = new Database(place, { readonly: true })
  onTestFinished(() => void reader.close())
  reader.exec('begin')
  reader.prepare('select count(*) from setting').get()
  const { aside, asideLogs } = await restore(place, file)
  const logs = [`${aside}-shm`, `${aside}-wal`]
  expect([[...asideLogs].sort(), storesLeftBeside(place)]).toEqual([logs, [aside, ...logs]])
  rmSync(aside ?? '')
  expect(storesLeftBeside(place)).toEqual(logs)
})

test('the log of a store that is gone or damaged is put aside and named', async () => {
  for (const lose of [(place: string) => rmSync(place), (place: string) => writeFileSync(place, 'damaged')]) {
    const { place, file } = await killed()
    lose(place)
    const { asideLogs } = await restore(place, file, { last: 1000, forgetsErasures: true })
    expect(asideLogs[0]).toMatch(/before-restore-\w+-wal$/)
    expect(storesLeftBeside(place)).toEqual(expect.arrayContaining([...asideLogs]))
    // A restore within the same second takes another name, or the log would stay beside the new store.
    writeFileSync(`${place}-wal`, readFileSync(asideLogs[0] ?? ''))
    rmSync(place)
    const next = await restore(place, file, { last: 1000, forgetsErasures: true })
    expect([existsSync(`${place}-wal`), next.asideLogs[0]]).toEqual([false, expect.stringMatching(/before-restore-19700101T000001Z-wal$/)])
  }
})

test.each(['.compact-journal', '.compact-wal', '.restored-wal', '.restored'])('a left %s is named as left', (ending) => {
  const place = join(temporaryFolder(), 'relay.db')
  for (const own of ['', '-wal', '.key', '.tombstones', '.before-restore-20260101T000000Z.key']) writeFileSync(`${place}${own}`, '')
  expect(storesLeftBeside(place)).toEqual([])
  writeFileSync(`${place}${ending}`, '')
  expect(storesLeftBeside(place)).toEqual([`${place}${ending}`])
})

test('of a store that a move has left, its log is named too, also without the store', () => {
  const place = join(temporaryFolder(), 'moved.db')
  for (const own of ['', '-wal', '.key']) writeFileSync(`${place}${own}`, '')
  expect(filesLeftAt(place)).toEqual([place, `${place}-wal`])
  rmSync(place)
  expect(filesLeftAt(place)).toEqual([`${place}-wal`])
  expect(filesLeftAt('postgres://db/relay')).toEqual(['postgres://db/relay'])
})

test('a push that was quarantined before a backup is not told as news after its restore', async () => {
  const quarantined = "insert into quarantine_count (at_ms, reason, count) values (1000, 'too_deep', 1)"
  const { place, file } = await backedUp(async (store) => void (await changeStoredRows(store, quarantined)))
  await restore(place, file)
  const { writes } = await openStore(NOON, sqlite, place)
  await writes.tellOperators({ nowMs: NOON })
  expect(await storedNumber(place, "select count(*) from trouble where subject = 'told of quarantine too_deep'")).toBe(0)
})

/** A link that leads to itself: nobody can know what is there, whatever the rights of the user. */
function loop(path: string): void {
  rmSync(path, { force: true })
  symlinkSync(path, path)
}

test.each(['.restoring', '.tombstones', '.key', '.marker'])(
  'a restore that cannot look at %s takes it neither for absent nor for damaged',
  async (suffix) => {
    const { place, file } = await backedUp()
    const before = readFileSync(place)
    loop(`${place}${suffix}`)
    const reason = /form a loop|ELOOP/
    await expect(restore(place, file, { forgetsErasures: true })).rejects.toThrow(reason)
    await expect(sqlite.openWriteStore(place)).rejects.toThrow(reason)
    expect([readFileSync(place).equals(before), existsSync(`${place}.restored`)]).toEqual([true, false])
  },
)

test('a backup whose key cannot be looked at is not restored without it', async () => {
  const { place, file } = await backedUp()
  loop(file.replace('.db', '.key'))
  await expect(restore(place, file)).rejects.toThrow('ELOOP')
})

test('a store that cannot be read now is not taken for one that is gone or damaged', async () => {
  const { place, file } = await backedUp()
  for (const suffix of ['-wal', '-shm']) rmSync(`${place}${suffix}`, { force: true })
  loop(`${place}-shm`)
  expect(() => inspectOld(place, 0)).toThrow(`${place} cannot be read now: the file of the store cannot be opened`)
  rmSync(`${place}-shm`)
  expect(inspectOld(place, 0)).not.toBeNull()
  writeFileSync(place, 'damaged, so nobody knows what it held')
  expect(inspectOld(place, 0)).toBeNull()
  await restore(place, file, { last: 1000 })
})

testWith('strace')('a restore that fails while it renames files is finished by the next one', async () => {
  const { place, file } = await backedUp()
  const folder = dirname(place)
  const config = writeConfig(folder, NO_CARRIER, { store: `sqlite:${place}` })
  const args = [...shipped().args, 'restore', '--config', config, file, '--yes', '--without-keys', '--forget-erasures']
  const failing = ['-f', '-o', '/dev/null', '-P', `${place}.restored`, '-e', 'trace=rename', '-e', 'inject=rename:error=EIO']
  const broken = spawnSync('strace', [...failing, process.execPath, ...args], { env: shipped().env, encoding: 'utf8' })
  expect([broken.status, broken.stderr]).toEqual([1, expect.stringContaining('the disk fails')])
  await expect(sqlite.openWriteStore(place)).rejects.toThrow('a restore of')
  const next = spawnSync(process.execPath, args, { env: shipped().env, encoding: 'utf8' })
  expect([next.status, next.stdout]).toEqual([0, expect.stringContaining('is now finished')])
  await (await sqlite.openWriteStore(place)).close()
})
