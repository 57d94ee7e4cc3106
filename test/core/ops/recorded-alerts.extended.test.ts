import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import { carrierThatTells } from '../../support/network/carrier-that-tells.ts'
import { createAuthority } from '../../support/network/private-authority.ts'
import { startDatabaseProxy } from '../../support/network/tcp-proxy.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { onPostgres } from '../../support/relay/on-postgres.ts'
import { createRecording, once, scrapeOf, twoPushes, untilShows } from '../../support/relay/recorded-scrapes.ts'
import { type Sections, spawnRelay, writeConfig } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { inSeconds, runRelay } from '../../support/relay/relay-process.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, NO_CARRIER } from '../../support/runner/constants.ts'
import { movableClock } from '../../support/runner/movable-clock.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { testWith } from '../../support/runner/test-with.ts'
import { withClient } from '../../support/store/postgres-client.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'
import { lengthenLog, whileLocked, withoutTable } from '../../support/store/stored-rows.ts'

async function watch(relay: Parameters<typeof operatorOf>[0], count: number): Promise<void> {
  const operate = await operatorOf(relay)
  for (let nth = 0; nth < count; nth++) await operate('PUT', `/relay/parcels/AB12345678${nth}SE/watch`)
}

testWith('promtool')('watched parcels that stay due sound an alert, but not in quiet hours', async () => {
  const recording = createRecording()
  const folder = temporaryFolder()
  const clock = movableClock(folder)
  // It is noon, because the quiet hours leave out a minute before midnight.
  clock.pass((36 * HOUR_MS - (Date.now() % DAY_MS)) % DAY_MS)
  const carrier = await carrierThatTells(() => ['2026-03-01T10:00:00Z'], clock.now)
  const start = async (sections: Sections) => await runRelay(writeConfig(folder, carrier.url, sections), clock.env)
  const minute = async () => clock.pass(MINUTE_MS)
  const quiet = await start({ poll: { quietHours: { from: '00:00', to: '23:59', zone: 'UTC' } } })
  await watch(quiet, 10)
  const night = await recording.pass(75, scrapeOf(quiet), minute)
  await quiet.stop()
  const poor = await start({ ...inSeconds, upstream: { ratePerSecond: 0.01, concurrency: 1 } })
  const behind = await recording.pass(65, scrapeOf(poor), minute)
  await poor.stop()
  const well = await start({})
  await untilShows(well, 'relay_parcels_overdue 0')
  const caughtUp = await recording.pass(2, scrapeOf(well))
  await well.stop()
  await carrier.close()
  recording.expectAlerts({ RelayPollsBehind: { [night]: 'silent', [behind]: 'firing', [caughtUp]: 'silent' } })
})

testWith('promtool')('the used-up calls of a day sound an alert until there are calls again', async () => {
  const recording = createRecording()
  const carrier = await carrierThatTells(() => ['2026-03-01T10:00:00Z'])
  const folder = temporaryFolder()
  const start = async (callsPerDay: number) => await runRelay(writeConfig(folder, carrier.url, { ...inSeconds, upstream: { callsPerDay } }))
  const poor = await start(4)
  const began = await recording.pass(2, scrapeOf(poor))
  await watch(poor, 10)
  await untilShows(poor, 'relay_carrier_calls_today 4')
  const spent = await recording.pass(8, scrapeOf(poor))
  await poor.stop()
  const rich = await start(1000)
  await untilShows(rich, 'relay_parcels_overdue 0')
  const again = await recording.pass(2, scrapeOf(rich))
  await rich.stop()
  await carrier.close()
  recording.expectAlerts({ RelayCallsSpent: { [began]: 'silent', [spent]: 'firing', [again]: 'silent' } })
})

testWith('promtool')('a store of which a table is lost sounds an alert until the table is back', async () => {
  const recording = createRecording()
  const relay = await relayOfTest()
  const began = await recording.pass(2, scrapeOf(relay))
  let unreadable = 0
  await withoutTable(relay.databasePath, 'parcel', async () => {
    await untilShows(relay, 'relay_store_readable 0')
    unreadable = await recording.pass(3, scrapeOf(relay))
  })
  await untilShows(relay, 'relay_store_readable 1')
  const read = await recording.pass(2, scrapeOf(relay))
  recording.expectAlerts({ RelayStoreUnreadable: { [began]: 'silent', [unreadable]: 'firing', [read]: 'silent' } })
})

testWith('promtool')('a database server that goes down sounds an alert until it is back', async () => {
  const recording = createRecording()
  const proxy = await startDatabaseProxy((await createDatabase('nothing')).url)
  const relay = await relayOfTest(await onPostgres(proxy.through))
  const began = await recording.pass(2, scrapeOf(relay))
  await proxy.goDown()
  await untilShows(relay, 'relay_store_readable 0')
  const away = await recording.pass(3, scrapeOf(relay))
  await proxy.comeUp()
  await untilShows(relay, 'relay_store_readable 1')
  const back = await recording.pass(2, scrapeOf(relay))
  recording.expectAlerts({ RelayStoreUnreadable: { [began]: 'silent', [away]: 'firing', [back]: 'silent' } })
})

testWith('promtool')('a write-ahead log that a program keeps long sounds an alert until that program ends', async () => {
  const recording = createRecording()
  const relay = await relayOfTest()
  const pushes = twoPushes(relay)
  const began = await recording.pass(2, scrapeOf(relay), pushes)
  const endReader = lengthenLog(relay.databasePath)
  await expect.poll(scrapeOf(relay)).toMatch(/^relay_store_wal_bytes 3\d{8}$/m)
  const long = await recording.pass(12, scrapeOf(relay), pushes)
  endReader()
  for (const nth of [100, 101]) await pushes(nth)
  await expect.poll(scrapeOf(relay)).toMatch(/^relay_store_wal_bytes 1?\d{1,8}$/m)
  const short = await recording.pass(2, scrapeOf(relay), pushes)
  recording.expectAlerts({ RelayWalGrows: { [began]: 'silent', [long]: 'firing', [short]: 'silent' } })
})

/** Returns how many commits have taken more than a quarter of a second. */
async function slowCommits(relay: Parameters<typeof scrapeOf>[0]): Promise<number> {
  const text = await scrapeOf(relay)()
  const shown = (line: string) =>
    Number(
      text
        .split('\n')
        .find((one) => one.startsWith(`${line} `))
        ?.slice(line.length),
    )
  return shown('relay_commit_seconds_count') - shown('relay_commit_seconds_bucket{le="0.25"}')
}

testWith('promtool')('commits that wait for another program sound an alert at two pushes a minute', async () => {
  const recording = createRecording()
  const relay = await relayOfTest()
  const slow = await recording.pass(15, scrapeOf(relay), async (minute) => {
    const before = await slowCommits(relay)
    // The relay waits half a second for the lock. Where the machine is slow, a commit may not have met it, or not have got it in time.
    for (let nth = 0; nth === 0 || (await slowCommits(relay)) === before; nth++) {
      let pushed: Promise<unknown> = Promise.resolve()
      await whileLocked(relay.databasePath, async () => {
        pushed = twoPushes(relay)(100 + 20 * minute + nth)
        const since = performance.now()
        await expect.poll(() => performance.now() - since).toBeGreaterThan(400)
      })
      await pushed
    }
  })
  // Before and after, a slow machine may have slow commits as well.
  recording.expectAlerts({ RelayCommitsSlow: { [slow]: 'firing' } })
})

testWith('promtool')('roles of a dead replica that a program locks sound an alert until they are taken', async () => {
  const recording = createRecording()
  const { url } = await createDatabase('nothing')
  const sections = await onPostgres(url)
  const died = await runRelay(writeConfig(temporaryFolder(), NO_CARRIER, sections))
  await untilShows(died, 'relay_roles_held{role="janitor"} 1')
  const held = await recording.pass(2, scrapeOf(died))
  const left = await withClient(url, async (client) => {
    await client.query('begin')
    await client.query('select * from role for update')
    died.process.kill('SIGKILL')
    await died.ended
    const relay = await relayOfTest(sections)
    const missing = await recording.pass(4, scrapeOf(relay))
    await client.query('rollback')
    return { relay, missing }
  })
  await untilShows(left.relay, 'relay_roles_held{role="janitor"} 1')
  const taken = await recording.pass(2, scrapeOf(left.relay))
  recording.expectAlerts({ RelayRoleMissing: { [held]: 'silent', [left.missing]: 'firing', [taken]: 'silent' } })
})

testWith('promtool')('retention whose passes fail sounds an alert until one ends', async () => {
  const recording = createRecording()
  const folder = temporaryFolder()
  const clock = movableClock(folder)
  await using relay = await runRelay(writeConfig(folder, NO_CARRIER), clock.env)
  const minute = async () => clock.pass(MINUTE_MS)
  const passedAt = async () => Number(/^relay_retention_pass_timestamp_seconds (\S+)$/m.exec(await scrapeOf(relay)())?.[1] ?? 0)
  await expect.poll(passedAt).toBeGreaterThan(0)
  let failing = 0
  await withoutTable(join(folder, 'relay.db'), 'age_mark', async () => {
    failing = await recording.pass(5 * 60, scrapeOf(relay), minute)
  })
  await expect.poll(passedAt).toBeGreaterThan((clock.now() - HOUR_MS) / 1000)
  const passed = await recording.pass(2, scrapeOf(relay), minute)
  recording.expectAlerts({ RelayRetentionStopped: { 60: 'silent', [failing]: 'firing', [passed]: 'silent' } })
})

testWith('promtool')('a backup that fails, or of which there is none, sounds an alert until one is made', async () => {
  const recording = createRecording()
  const folder = temporaryFolder()
  const directory = join(folder, 'unmounted', 'backups')
  const relay = await relayOfTest({ backup: { directory } }, { folder })
  const operate = await operatorOf(relay)
  const missing = await recording.pass(26 * 60 + 2, once(scrapeOf(relay)))
  await operate('POST', '/relay/backups', { name: 'first' })
  await untilShows(relay, 'relay_backup_failing 1')
  const failing = await recording.pass(3, scrapeOf(relay))
  mkdirSync(dirname(directory))
  await operate('POST', '/relay/backups', { name: 'second' })
  await untilShows(relay, 'relay_backup_failing 0')
  const made = await recording.pass(2, scrapeOf(relay))
  recording.expectAlerts({
    RelayBackupMissing: { 60: 'silent', [missing]: 'firing', [made]: 'silent' },
    RelayBackupFails: { [missing]: 'silent', [failing]: 'firing', [made]: 'silent' },
  })
})

testWith('promtool')('a backup that grows old sounds an alert until another is made', async () => {
  const recording = createRecording()
  const folder = temporaryFolder()
  const clock = movableClock(folder)
  await using relay = await runRelay(writeConfig(folder, NO_CARRIER, { backup: { directory: join(folder, 'backups') } }), clock.env)
  const backUp = async (name: string) => {
    expect((await (await operatorOf(relay))('POST', '/relay/backups', { name })).status).toBeLessThan(300)
    await expect.poll(scrapeOf(relay)).toMatch(/^relay_backup_age_seconds \d(?:\.\d+)?$/m)
  }
  const minute = async () => clock.pass(MINUTE_MS)
  await backUp('first')
  const made = await recording.pass(2, scrapeOf(relay), minute)
  clock.pass(2 * DAY_MS)
  const old = await recording.pass(4 * 60, scrapeOf(relay), minute)
  await backUp('second')
  const again = await recording.pass(2, scrapeOf(relay), minute)
  recording.expectAlerts({ RelayBackupOld: { [made]: 'silent', [made + 60]: 'silent', [old]: 'firing', [again]: 'silent' } })
})

testWith('promtool')('a relay that ends again and again, and then does not start, sounds two alerts', async () => {
  const recording = createRecording()
  const config = writeConfig(temporaryFolder(), NO_CARRIER)
  let restarted = 0
  for (let nth = 0; nth < 5; nth++) {
    const relay = await spawnRelay(config)
    restarted = await recording.pass(2, scrapeOf(relay))
    relay.process.kill('SIGKILL')
    await relay.ended
  }
  const ended = await recording.pass(4, () => Promise.reject(new Error('nothing answers')))
  recording.expectAlerts({
    RelayRestarts: { 2: 'silent', [restarted]: 'firing' },
    RelayDown: { [restarted]: 'silent', [ended]: 'firing' },
  })
})

testWith('promtool', 'openssl')('certificates that expire within a day sound an alert until they are renewed', async () => {
  const recording = createRecording()
  const record = async (days: number) => {
    const folder = temporaryFolder()
    createAuthority(folder).sign('localhost', days)
    const pair = { certFile: join(folder, 'localhost.pem'), keyFile: join(folder, 'localhost.key') }
    const shop = { name: 'shop', url: 'https://localhost:9/', sharedKey: 'the-key-of-the-shop-endpoint', clientCert: pair }
    const relay = await relayOfTest({ listen: { public: { tls: pair } }, endpoints: [shop] }, { folder })
    const last = await recording.pass(days < 14 ? 65 : 2, scrapeOf(relay))
    await relay.stop()
    return last
  }
  const expiring = await record(1)
  const renewed = await record(90)
  const standings = { [expiring]: 'firing', [renewed]: 'silent' } as const
  recording.expectAlerts({
    RelayCertificateExpiring: standings,
    RelayCertificateExpires: standings,
    RelayEndpointCertificateExpiring: standings,
    RelayEndpointCertificateExpires: standings,
  })
})
