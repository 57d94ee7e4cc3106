import { mkdirSync, readFileSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { goodBody, json, openCarrier } from '../carrier/carrier-double.ts'
import { pushBody } from '../support/history/builders.ts'
import { createAuthority } from '../support/network/private-authority.ts'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { createRecording, scrapeOf } from '../support/relay/recorded-scrapes.ts'
import { push, type Sections, spawnRelay, writeConfig } from '../support/relay/relay.ts'
import { DELIVERING, metricsWith } from '../support/relay/relay-metrics.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { testWith } from '../support/runner/test-with.ts'

test('a recording plays each alert', () => {
  const played = readFileSync('test/ops/recorded-alerts.test.ts', 'utf8')
  const alerts = [...readFileSync('ops/prometheus/alerts.yaml', 'utf8').matchAll(/alert: (\w+)/g)].map(([, alert = '']) => alert)
  expect(alerts.length).toBeGreaterThan(20)
  expect(alerts.filter((alert) => !played.includes(`${alert}: `))).toEqual([])
})

/** Waits for a line of the metrics. */
async function untilShows(relay: { readonly internalUrl: string }, line: string): Promise<void> {
  const name = line.slice(0, line.lastIndexOf(' '))
  const shown = async () => (await scrapeOf(relay)()).split('\n').filter((one) => one.startsWith(`${name} `))
  await expect.poll(shown).toEqual([line])
}

/** What a quiet carrier pushes in a minute. */
const twoPushes =
  (relay: { readonly publicUrl: string }, headers = {}) =>
  async (minute: number) => {
    for (const nth of [1, 2]) await push(relay.publicUrl, pushBody({ trackingIds: [`${1000 + minute}`], location: `${nth}` }), headers)
  }

/** Scrapes and counts of the part of a relay that a test cannot bring into trouble: what its metrics say then. */
const rendered = (metrics: ReturnType<typeof metricsWith>) => async () => (await metrics.render()).body

/** Scrapes once, for a time in which nothing happens. */
function once(scrape: () => Promise<string>): () => Promise<string> {
  let scraped: Promise<string> | null = null
  return () => (scraped ??= scrape())
}

async function watch(relay: Parameters<typeof operatorOf>[0], count: number): Promise<void> {
  const operate = await operatorOf(relay)
  for (let nth = 0; nth < count; nth++) await operate('PUT', `/relay/parcels/AB12345678${nth}SE/watch`)
}

const DAY_MS = 24 * 60 * 60 * 1000

const free = () => {
  const { bavail, bsize } = statfsSync(tmpdir())
  return bavail * bsize
}
/** The largest limit. The disk of the tests has less free. */
const LARGEST = 1024 ** 4

testWith('promtool')('a relay that starts on a full disk sounds two critical alerts for a quiet carrier', async () => {
  const recording = createRecording()
  const folder = temporaryFolder()
  const full = await relayOfTest({ limits: { freeSpaceMin: LARGEST } }, { folder })
  const refused = await recording.pass(12, scrapeOf(full), twoPushes(full))
  await full.stop()
  const low = await relayOfTest({ limits: { freeSpaceMin: Math.round(free() * 0.7) } }, { folder })
  const taken = await recording.pass(20, scrapeOf(low), twoPushes(low))
  recording.expectAlerts({
    RelayDiskFull: { 3: 'firing', [refused]: 'firing', [taken]: 'silent' },
    RelayPushesUnanswered: { 3: 'silent', [refused]: 'firing', [taken]: 'silent' },
    RelayDiskLow: { [taken]: 'firing' },
  })
})

testWith('promtool')('a carrier whose key has changed sounds a critical alert, which ends with right signatures', async () => {
  const recording = createRecording()
  const relay = await relayOfTest()
  const wrong = await recording.pass(
    40,
    scrapeOf(relay),
    twoPushes(relay, { 'x-service-hmac-sha256': 'bm90IGEgc2lnbmF0dXJlIGF0IGFsbCwgcmVhbGx5ISE=' }),
  )
  const right = await recording.pass(20, scrapeOf(relay), twoPushes(relay))
  recording.expectAlerts({
    RelaySignaturesRefused: { [wrong]: 'firing', [right]: 'silent' },
    RelayNoPushAccepted: { [wrong]: 'firing', [right]: 'silent' },
  })
})

testWith('promtool')('the first quarantined push after a start sounds an alert until it is dismissed', async () => {
  const recording = createRecording()
  const relay = await relayOfTest()
  await recording.pass(1, scrapeOf(relay), () => push(relay.publicUrl, '{"not":"an event"}'))
  const held = await recording.pass(60, scrapeOf(relay))
  const operate = await operatorOf(relay)
  expect((await operate('POST', '/relay/inbox/dismiss', { state: 'quarantined' })).status).toBeLessThan(300)
  await untilShows(relay, 'relay_inbox_quarantined 0')
  const dismissed = await recording.pass(2, scrapeOf(relay))
  recording.expectAlerts({ RelayPushesQuarantined: { 2: 'firing', [held]: 'firing', [dismissed]: 'silent' } })
})

testWith('promtool')('a login that the carrier refuses from the start sounds an alert', async () => {
  const recording = createRecording()
  const carrier = await openCarrier({ token: (_request, response) => json(response, 401, '{}') })
  const folder = temporaryFolder()
  const relay = await relayOfTest({}, { folder, carrierUrl: carrier.url })
  await untilShows(relay, 'relay_carrier_credentials_refused 1')
  const refused = await recording.pass(3, scrapeOf(relay))
  await relay.stop()
  await carrier.close()
  const other = await openCarrier()
  const corrected = await relayOfTest({ upstream: { password: 'another-password' } }, { folder, carrierUrl: other.url })
  await untilShows(corrected, 'relay_carrier_credentials_refused 0')
  const accepted = await recording.pass(3, scrapeOf(corrected))
  await corrected.stop()
  await other.close()
  recording.expectAlerts({ RelayCredentialsRefused: { [refused]: 'firing', [accepted]: 'silent' } })
})

testWith('promtool')('a carrier that fails from the start sounds an alert until it answers', async () => {
  const recording = createRecording()
  let isWell = false
  const carrier = await openCarrier({ status: (_request, response) => json(response, isWell ? 200 : 500, goodBody) })
  const relay = await relayOfTest({}, { carrierUrl: carrier.url })
  const operate = await operatorOf(relay)
  for (const nth of [1, 2, 3, 4, 5, 6]) await operate('POST', `/relay/parcels/AB12345678${nth}SE/refresh`)
  await untilShows(relay, 'relay_carrier_resting 1')
  const failing = await recording.pass(13, scrapeOf(relay))
  isWell = true
  // The parcels that have failed are due in minutes only, so an operator asks.
  await expect.poll(async () => (await operate('POST', '/relay/parcels/AB999999999SE/refresh')).status, { interval: 1000 }).toBe(200)
  await untilShows(relay, 'relay_carrier_resting 0')
  const answers = await recording.pass(2, scrapeOf(relay))
  await relay.stop()
  await carrier.close()
  recording.expectAlerts({ RelayCarrierFailing: { [failing]: 'firing', [answers]: 'silent' } })
})

testWith('promtool')('watched parcels that stay due sound an alert, but not in quiet hours', async () => {
  const recording = createRecording()
  const folder = temporaryFolder()
  const carrier = await openCarrier()
  const start = async (sections: Sections) => await relayOfTest(sections, { folder, carrierUrl: carrier.url })
  const quiet = await start({ poll: { quietHours: { from: '00:00', to: '23:59', zone: 'UTC' } } })
  await watch(quiet, 10)
  // The first polls of a list are spread over some minutes.
  await expect.poll(scrapeOf(quiet)).toMatch(/^relay_parcels_overdue (?:[3-9]|10)$/m)
  const night = await recording.pass(65, once(scrapeOf(quiet)))
  await quiet.stop()
  const poor = await start({ upstream: { ratePerSecond: 0.01, concurrency: 1 } })
  const behind = await recording.pass(65, once(scrapeOf(poor)))
  await poor.stop()
  const well = await start({})
  await untilShows(well, 'relay_parcels_overdue 0')
  const caughtUp = await recording.pass(2, scrapeOf(well))
  await well.stop()
  await carrier.close()
  recording.expectAlerts({ RelayPollsBehind: { [night]: 'silent', [behind]: 'firing', [caughtUp]: 'silent' } })
})

testWith('promtool')('a clock that contradicts the carrier sounds an alert until they agree', async () => {
  const recording = createRecording()
  let aheadMs = 3 * DAY_MS
  const carrier = await openCarrier({
    status: (_request, response) => json(response, 200, goodBody, { date: new Date(Date.now() + aheadMs).toUTCString() }),
  })
  const relay = await relayOfTest({}, { carrierUrl: carrier.url })
  const operate = await operatorOf(relay)
  const began = await recording.pass(2, scrapeOf(relay))
  await operate('POST', '/relay/parcels/AB123456789SE/refresh')
  const doubted = await recording.pass(8, scrapeOf(relay))
  aheadMs = 0
  await operate('POST', '/relay/parcels/AB123456789SE/refresh')
  const trusted = await recording.pass(2, scrapeOf(relay))
  await relay.stop()
  await carrier.close()
  recording.expectAlerts({ RelayClockDoubted: { [began]: 'silent', [doubted]: 'firing', [trusted]: 'silent' } })
})

testWith('promtool')('an endpoint that fails, is gone or refuses an event sounds an alert until it recovers', async () => {
  const recording = createRecording()
  const receiver = await receiverOfTest()
  const relay = await relayOfTest({ delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['10h'] } })
  const operate = await operatorOf(relay)
  const { body } = await operate('POST', '/relay/endpoints', { name: 'shop', url: receiver.url, refusals: 'skip' })
  await recording.pass(2, scrapeOf(relay))
  receiver.answer(() => 400)
  await push(relay.publicUrl, pushBody({ trackingIds: ['9000'] }))
  await untilShows(relay, 'relay_endpoint_dead{endpoint="shop"} 1')
  const dead = await recording.pass(3, scrapeOf(relay))
  receiver.answer(() => 500)
  for (let nth = 0; nth < 8; nth++) await push(relay.publicUrl, pushBody({ trackingIds: [String(9001 + nth)] }))
  await untilShows(relay, 'relay_endpoint_failing{endpoint="shop"} 1')
  const failing = await recording.pass(20, scrapeOf(relay))
  receiver.answer(() => 410)
  await operate('POST', `/relay/endpoints/${String(body.id)}/retry`)
  await untilShows(relay, 'relay_endpoint_disabled{endpoint="shop"} 1')
  const gone = await recording.pass(65, scrapeOf(relay))
  receiver.answer(() => 200)
  await operate('PATCH', `/relay/endpoints/${String(body.id)}`, { enabled: true })
  await untilShows(relay, 'relay_endpoint_waiting{endpoint="shop"} 0')
  const well = await recording.pass(3, scrapeOf(relay))
  recording.expectAlerts({
    RelayDeliveriesGivenUp: { 1: 'silent', [dead]: 'firing', [well]: 'silent' },
    RelayEndpointFailing: { [failing]: 'firing', [well]: 'silent' },
    RelayEndpointDisabled: { [gone]: 'firing', [well]: 'silent' },
  })
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
  const last = { name: 'a', atMs: 0, bytes: 1 }
  const backupsAt = (nowMs: number) => rendered(metricsWith({ backups: () => ({ state: { last, failing: null }, failures: 0, nowMs }) }))
  const made = await recording.pass(2, backupsAt(1))
  const old = await recording.pass(65, backupsAt(3 * DAY_MS))
  const again = await recording.pass(2, backupsAt(1))
  recording.expectAlerts({ RelayBackupOld: { [made]: 'silent', [old]: 'firing', [again]: 'silent' } })
})

testWith('promtool')('a store that cannot be read from the start sounds an alert', async () => {
  const recording = createRecording()
  const unreadable = await recording.pass(3, rendered(metricsWith({ gauges: () => Promise.reject(new Error('unreadable')) })))
  const read = await recording.pass(2, rendered(metricsWith()))
  recording.expectAlerts({ RelayStoreUnreadable: { [unreadable]: 'firing', [read]: 'silent' } })
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

testWith('promtool')('a long log, a lost role, silent pushes and a slow endpoint each sound an alert', async () => {
  const recording = createRecording()
  const ports: Parameters<typeof metricsWith>[0] = {
    replicas: async () => ({ all: [{ id: 1, roles: ['janitor'] }], id: 1 }),
    endpoints: async () => [{ name: 'shop', waiting: 1, oldestWaitingSeconds: 1000, dead: 0, conditions: DELIVERING }],
  }
  const troubled = await recording.pass(12, rendered(metricsWith(ports, { logBytes: 268_435_457, pushesSilent: 1 })))
  const well = await recording.pass(2, rendered(metricsWith({}, { logBytes: 268_435_456 })))
  const standings = { [troubled]: 'firing', [well]: 'silent' } as const
  recording.expectAlerts({
    RelayWalGrows: standings,
    RelayRoleMissing: standings,
    RelayPushesSilent: standings,
    RelayEndpointBehind: standings,
  })
})

testWith('promtool')('slow commits of two pushes a minute sound an alert', async () => {
  const recording = createRecording()
  const metrics = metricsWith()
  const slow = await recording.pass(15, rendered(metrics), async () => metrics.meter.batchCommitted(2, 600))
  const quick = await recording.pass(10, rendered(metrics), async () => metrics.meter.batchCommitted(2, 1))
  recording.expectAlerts({ RelayCommitsSlow: { [slow]: 'firing', [quick]: 'silent' } })
})

testWith('promtool')('retention of which no pass ever ends sounds an alert', async () => {
  const recording = createRecording()
  const stopped = await recording.pass(5 * 60, rendered(metricsWith()))
  const last = {
    startedAtMs: Date.now(),
    endedAtMs: Date.now() + 5 * 3_600_000,
    removed: {},
    held: {},
    givenUp: {},
    heldSinceMs: null,
    endpoints: [],
    isClockDoubted: false,
  }
  const passed = await recording.pass(2, rendered(metricsWith({ retention: async () => ({ pass: null, last }) })))
  recording.expectAlerts({ RelayRetentionStopped: { 60: 'silent', [stopped]: 'firing', [passed]: 'silent' } })
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
