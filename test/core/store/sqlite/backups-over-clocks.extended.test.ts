import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import type { Job } from '../../../../src/core/domain/admin/job.ts'
import { writeKeyFile } from '../../../../src/core/store/sqlite/whole-file.ts'
import {
  type BackupFolder,
  type BackupState,
  isScheduled,
  NO_BACKUPS,
  namedAhead,
  stateAfterBackup,
} from '../../../../src/upkeep/backups/backup.rules.ts'
import {
  backupFolder,
  digestFile,
  fileOf,
  keyFileOf,
  listBackups,
  readDigest,
  readManifest,
} from '../../../../src/upkeep/backups/backup-folder.ts'
import { makeBackup } from '../../../../src/upkeep/backups/make-backup.ts'
import { type ManageBackupsPorts, openManageBackups } from '../../../../src/upkeep/backups/manage-backups.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, NOON } from '../../../support/runner/constants.ts'
import { createLogBook } from '../../../support/runner/log-book.ts'
import { casesOf } from '../../../support/runner/long-form.ts'
import { drawWith, seeded } from '../../../support/runner/seeded.ts'
import { temporaryFolder } from '../../../support/runner/temporary.ts'

const JUMPS = [-400 * DAY_MS, -25 * HOUR_MS, -90 * MINUTE_MS, -MINUTE_MS, -1000, MINUTE_MS, 3 * HOUR_MS, 400 * DAY_MS]

interface World {
  readonly directory: string
  readonly draw: ReturnType<typeof drawWith>
  nowMs: number
}

/** A relay whose store holds, in `probe`, the number of the moment. Runs of it follow each other after kills. */
function openRelay(world: World, relayId: string) {
  const folder = temporaryFolder()
  const [path, copy] = [join(folder, 'relay.db'), join(folder, 'relay.db.backup')]
  const db = new Database(path)
  db.exec('create table setting (name text primary key, value blob); create table probe (n integer)')
  db.prepare("insert into setting values ('relay-id', ?)").run(Buffer.from(relayId, 'hex'))
  writeKeyFile(`${path}.key`, Buffer.alloc(32, 1))
  const { log, lines } = createLogBook()
  let state: BackupState = NO_BACKUPS
  let keep = 3
  const killing = Promise.withResolvers<void>()
  let killed = killing
  let willBeKilled = false

  function folderOf(): BackupFolder {
    return {
      list: listBackups,
      without: async () => [],
      discard: backupFolder.discard,
      async openMaker(order) {
        const work = makeBackup(order)
        return {
          async advance() {
            if (world.draw.below(12) === 0) world.nowMs += world.draw.pick(JUMPS)
            if (willBeKilled && world.draw.below(4) === 0) {
              killed.resolve()
              await new Promise<never>(() => undefined)
            }
            const turn = work.next()
            return turn.value
          },
          close: async () => undefined,
        }
      },
    }
  }
  const job = (task: Job['task']): Job => ({
    jobId: 1,
    task,
    state: 'waiting',
    by: 'schedule',
    done: 0,
    cursor: null,
    failure: null,
    createdAtMs: 0,
    startedAtMs: null,
    endedAtMs: null,
  })
  const ports = (): ManageBackupsPorts => ({
    write: {
      relayId: async () => relayId,
      startJob: async ({ task }) => job(task),
      noteProgress: async () => ({ isWanted: true }),
      async copyStore({ file }) {
        db.prepare('vacuum into ?').run(file)
        return { sequence: 0 }
      },
      copyProgress: async () => null,
      stopCopy: async () => undefined,
      backupState: async () => state,
      endLeftBackups: async () => undefined,
    },
    reads: { listJobs: async () => [] },
    folder: folderOf(),
    settings: () => ({ directory: world.directory, cron: '0 * * * *', keep }),
    order: { copy, version: '1', keyFile: `${path}.key`, keys: () => [] },
    room: () => ({ freeBytes: 1e12, freeBytesMin: 0, storeBytes: 1 }),
    trouble: () => null,
    clock: { now: () => world.nowMs },
    // Nothing is late here.
    pause: (ms) => new Promise((resolve) => (ms < 1000 ? setImmediate(resolve) : undefined)),
    unstored: {
      async write(what) {
        if (what.kind === 'backup') state = stateAfterBackup(state, what.end)
      },
    },
    log,
  })
  let manage = openManageBackups(ports())
  return {
    relayId,
    lines,
    keep: () => keep,
    manage: () => manage,
    setKeep(next: number) {
      keep = next
    },
    note: (n: number) => void db.prepare('insert into probe values (?)').run(n),
    /** Whether the backup ended before a kill. */
    async scheduled(mayBeKilled: boolean): Promise<boolean> {
      willBeKilled = mayBeKilled
      killed = Promise.withResolvers<void>()
      const wasKilled = killed.promise.then(() => true)
      if (!(await Promise.race([(await manage).scheduled().then(() => false), wasKilled]))) return true
      await backupFolder.discard(copy)
      manage = openManageBackups(ports())
      return false
    },
  }
}

/** The number of the moment of a backup. Throws if it could not be restored. */
function provenMoment(directory: string, name: string): number {
  const file = fileOf(directory, name)
  const db = new Database(file, { readonly: true })
  try {
    expect(readManifest(db)).toMatchObject({ name })
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
    const digest = readDigest(db)
    const work = digestFile(file, digest)
    let turn = work.next()
    while (turn.done !== true) turn = work.next()
    expect([turn.value?.digest, existsSync(keyFileOf(directory, name))]).toEqual([digest, true])
    return Number(db.prepare('select max(n) from probe').pluck().get())
  } finally {
    db.close()
  }
}

test('wherever clocks jump, a backup just made stays, is whole and the only one of its moment', async () => {
  for (let seed = 1; seed <= casesOf(60, 2); seed++) {
    const draw = drawWith(seeded(seed * 7919))
    const world: World = { directory: temporaryFolder(), draw, nowMs: NOON }
    const relays = ['aa', 'bb'].map((name) => openRelay(world, name.repeat(16)))
    writeFileSync(join(world.directory, 'scheduled-mine.db'), 'not ours')
    let moment = 0
    for (let step = 0; step < 25; step++) {
      // The schedule is of whole hours; a clock put back reaches them again.
      const hour = Math.floor(world.nowMs / HOUR_MS) * HOUR_MS
      world.nowMs = draw.below(4) === 0 ? hour + HOUR_MS * draw.below(30) : hour + HOUR_MS
      if (draw.below(3) === 0) world.nowMs += Math.round(draw.pick(JUMPS) / HOUR_MS) * HOUR_MS
      const relay = draw.pick(relays)
      if (draw.below(8) === 0) relay.setKeep(1 + draw.below(4))
      relay.note(++moment)
      const at = `seed ${seed}, step ${step}`
      const others = () => readdirSync(world.directory).filter((name) => !name.includes(relay.relayId.slice(0, 8)))
      const [before, skippedBefore] = [others(), (await relay.manage()).skipped()]
      relay.lines.length = 0
      const isDone = await relay.scheduled(draw.below(6) === 0)
      expect([at, others()]).toEqual([at, before])
      const manage = await relay.manage()
      expect([at, manage.failures(), relay.lines.filter(({ level }) => level === 'error')]).toEqual([at, 0, []])
      if (!isDone) continue
      const own = (await listBackups(world.directory, null))
        .map(({ name }) => name)
        .filter((name) => isScheduled(name) && name.endsWith(relay.relayId.slice(0, 8)))
      const moments = own.map((name) => provenMoment(world.directory, name))
      expect([at, new Set(moments).size]).toEqual([at, moments.length])
      const last = manage.state().last?.name ?? ''
      expect([at, own.includes(last), provenMoment(world.directory, last)]).toEqual([at, true, Math.max(...moments)])
      const isSkipped = manage.skipped() > skippedBefore
      if (!isSkipped) expect([at, Math.max(...moments)]).toEqual([at, moment])
      const ahead = namedAhead(own, world.nowMs)
      const counted = own.filter((name) => !namedAhead(own, manage.state().last?.atMs ?? 0).includes(name) || name === last)
      if (!isSkipped) expect([at, counted.length <= relay.keep()]).toEqual([at, true])
      const isTold = relay.lines.some(({ message }) => message.includes('times to come'))
      if (!isSkipped && ahead.length > 0) expect([at, isTold]).toEqual([at, true])
    }
  }
})
