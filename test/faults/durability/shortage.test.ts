import { rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { pushBody } from '../../support/history/builders.ts'
import { distinctPushes, pushPipelined } from '../../support/network/pipelined-pushes.ts'
import { ask, logIn, push, type Sections } from '../../support/relay/relay.ts'
import { onlyLong } from '../../support/runner/long-form.ts'
import { withinOwed } from '../../support/runner/real-time.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { testWith } from '../../support/runner/test-with.ts'
import { readStore } from '../../support/store/simulated-disk.ts'
import { fillUp, smallDisk } from '../../support/store/small-disk.ts'
import { spawnTraced, type TracedRelay, tracedRelayOfTest } from '../../support/store/strace.ts'

const MB = 1024 * 1024
const RECOVERY_MS = withinOwed(5000)

/** Resolves when the condition holds, with the milliseconds that this took. */
async function until(holds: () => Promise<boolean>): Promise<number> {
  const startedAt = performance.now()
  while (!(await holds())) {
    if (performance.now() - startedAt > 60_000) throw new Error('the condition did not hold within a minute')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return performance.now() - startedAt
}

const statusOf = async (relay: TracedRelay, name: string) => (await push(relay.publicUrl, pushBody({ location: name }))).status
const readiness = async (relay: TracedRelay) => await fetch(`${relay.internalUrl}/readyz`)

testWith('a small file system')('S5, S6, F4: pushes are refused before the disk is full, and no relay starts on a full disk', async () => {
  const disk = smallDisk(16)
  const store = join(disk, 'relay.db')
  const sections = { store: `sqlite:${store}`, limits: { freeSpaceMin: '4MB' } }
  const relay = await tracedRelayOfTest(temporaryFolder(), { sections })
  const token = await logIn(relay.internalUrl)
  expect(await statusOf(relay, 'while there is room')).toBe(200)
  const { bavail, bsize } = statfsSync(disk)
  writeFileSync(join(disk, 'ballast'), Buffer.alloc(bavail * bsize - 3 * MB))
  await until(async () => (await readiness(relay)).status === 503)
  expect(await (await readiness(relay)).text()).toContain('disk_full: ')
  const refused = await push(relay.publicUrl, pushBody({ location: 'too late' }))
  expect([refused.status, Number(refused.headers.get('retry-after'))]).toEqual([503, 5])
  expect((await ask(relay.internalUrl, token, '/v1/status/1001/all')).status).toBe(200)

  rmSync(join(disk, 'ballast'))
  expect(await until(async () => (await statusOf(relay, 'room again')) === 200)).toBeLessThan(RECOVERY_MS)
  expect((await readiness(relay)).status).toBe(200)
  // Refused pushes are counted in the log, and have no lines of their own.
  expect(relay.output()).toContain('pushes were answered 503')
  expect(relay.output()).not.toContain('a request could not be served')
  // The relay refused the pushes before the disk itself failed a write.
  expect(relay.output()).not.toMatch(/SQLITE_(FULL|IOERR)|ENOSPC/)

  relay.process.kill('SIGTERM')
  await relay.ended
  await expectStartsOnFull(disk, sections)
})

async function expectStartsOnFull(disk: string, sections: Sections): Promise<void> {
  const store = join(disk, 'relay.db')
  const kept = readStore(store).bodies.size
  fillUp(disk)
  await expect(spawnTraced(temporaryFolder(), { sections })).rejects.toMatchObject({
    code: 1,
    message: expect.stringContaining(`the disk is full: there is no room in ${disk}`),
  })
  rmSync(join(disk, 'ballast'))
  expect([kept, readStore(store).bodies.size]).toEqual([2, 2])
  // With a little room, the relay starts but refuses pushes.
  const { bavail, bsize } = statfsSync(disk)
  writeFileSync(join(disk, 'ballast'), Buffer.alloc(bavail * bsize - 2 * MB))
  const degraded = await tracedRelayOfTest(temporaryFolder(), { sections })
  const token = await logIn(degraded.internalUrl)
  expect([await statusOf(degraded, 'too late'), (await readiness(degraded)).status]).toEqual([503, 503])
  expect((await ask(degraded.internalUrl, token, '/v1/status/1001/all')).status).toBe(200)
}

onlyLong(testWith('a small file system'))('S4, F4: a full disk causes 503s and no false 200, and pushes recover', async () => {
  const disk = smallDisk(16)
  const store = join(disk, 'relay.db')
  const relay = await tracedRelayOfTest(temporaryFolder(), { sections: { store: `sqlite:${store}`, limits: { freeSpaceMin: 0 } } })
  const token = await logIn(relay.internalUrl)
  const early = distinctPushes(20, 'early')
  expect(await pushPipelined(relay.publicUrl, early, 4)).toEqual(early.map(() => 200))
  fillUp(disk)
  const full = distinctPushes(40, 'full')
  const whileFull = await pushPipelined(relay.publicUrl, full, 4)
  expect(whileFull).toContain(503)
  expect((await readiness(relay)).status).toBe(503)
  expect((await ask(relay.internalUrl, token, '/v1/status/5001/all')).status).toBe(200)
  rmSync(join(disk, 'ballast'))
  expect(await until(async () => (await statusOf(relay, 'room again')) === 200)).toBeLessThan(RECOVERY_MS)
  await relay.kill()
  const { bodies, damage } = readStore(store)
  const owed = [...early, ...full.filter((_, at) => whileFull[at] === 200)]
  expect({ damage, lost: owed.filter((body) => !bodies.has(body.toString())).length }).toEqual({ damage: null, lost: 0 })
})

test('S10, S12: pushes get 503 while another program locks the store; its reads let the WAL grow', async () => {
  const folder = temporaryFolder()
  const relay = await tracedRelayOfTest(folder, { pragmas: { journal_size_limit: 4 * MB, wal_autocheckpoint: 100 } })
  const token = await logIn(relay.internalUrl)
  expect(await statusOf(relay, 'before')).toBe(200)
  expect((await ask(relay.internalUrl, token, '/v1/status/1001/all')).status).toBe(200)
  const foreign = new Database(join(folder, 'relay.db'))
  const unlocked = await pushesBesideReads(relay, token)
  expect(unlocked.statuses).toEqual(Array(16).fill(200))
  foreign.exec('BEGIN IMMEDIATE')
  const locked = await pushesBesideReads(relay, token)
  expect(locked.statuses).toEqual(Array(16).fill(503))
  // If the driver itself waited for the lock, each batch of pushes would take 5 s.
  expect(locked.tookMs).toBeLessThan(withinOwed(500) + 10 * unlocked.tookMs)
  expect(await (await readiness(relay)).text()).toContain('another program has locked the store')
  foreign.exec('ROLLBACK')
  foreign.close()
  expect(await until(async () => (await statusOf(relay, 'after')) === 200)).toBeLessThan(RECOVERY_MS)
  expect((await readiness(relay)).status).toBe(200)
  await expectLogCutBack(relay, folder)
})

async function pushesBesideReads(relay: TracedRelay, token: string) {
  const startedAt = performance.now()
  const pushed = Promise.all(Array.from({ length: 16 }, (_, at) => statusOf(relay, `${startedAt} ${at}`)))
  for (let at = 0; at < 10; at++) {
    expect((await ask(relay.internalUrl, token, '/v1/status/1001/all')).status).toBe(200)
  }
  return { statuses: await pushed, tookMs: performance.now() - startedAt }
}

/** Expects that the WAL is truncated when no reader uses an old state of the store any more. */
async function expectLogCutBack(relay: TracedRelay, folder: string): Promise<void> {
  const logBytes = () => statSync(join(folder, 'relay.db-wal')).size
  const holder = new Database(join(folder, 'relay.db'), { readonly: true })
  holder.exec('BEGIN')
  holder.prepare('SELECT count(*) FROM inbox').get()
  const large = distinctPushes(60, 'x'.repeat(200_000))
  expect(await pushPipelined(relay.publicUrl, large, 8)).toEqual(large.map(() => 200))
  expect(logBytes()).toBeGreaterThan(8 * MB)
  await until(async () => {
    const text = await (await fetch(`${relay.internalUrl}/metrics`)).text()
    return Number(/^relay_store_wal_bytes (\d+)/m.exec(text)?.[1]) === logBytes()
  })
  holder.exec('COMMIT')
  holder.close()
  for (let at = 0; at < 3; at++) expect(await statusOf(relay, `after ${at}`)).toBe(200)
  expect(logBytes()).toBeLessThanOrEqual(4 * MB)
}

onlyLong(test)('S13: with too few open files allowed, connections wait or close, and the relay recovers', async () => {
  const folder = temporaryFolder()
  const relay = await tracedRelayOfTest(folder, { wrapper: ['prlimit', '--nofile=64:64'] })
  expect(await statusOf(relay, 'before')).toBe(200)
  const { hostname, port } = new URL(relay.publicUrl)
  const closed: Promise<void>[] = []
  const sockets: Socket[] = Array.from({ length: 200 }, () => {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => undefined)
    closed.push(new Promise((resolve) => socket.once('close', () => resolve())))
    return socket
  })
  // The relay keeps some connections, and must close the others.
  await Promise.all(
    [closed[100], ...closed.slice(190)].map((one) => Promise.race([one, new Promise((resolve) => setTimeout(resolve, 2000))])),
  )
  for (const socket of sockets) socket.destroy()
  await Promise.all(closed)
  const recovered = await until(async () => (await statusOf(relay, 'after').catch(() => 0)) === 200)
  expect(recovered).toBeLessThan(RECOVERY_MS)
  expect(relay.process.exitCode).toBeNull()
})
