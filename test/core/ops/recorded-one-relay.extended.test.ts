import { globSync, readFileSync, statfsSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { pushBody } from '../../support/history/builders.ts'
import { carrierThatTells } from '../../support/network/carrier-that-tells.ts'
import { listenInTest } from '../../support/network/listen.ts'
import { receiverOfTest } from '../../support/network/webhook-receiver.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { createRecording, scrapeOf, twoPushes, untilShows } from '../../support/relay/recorded-scrapes.ts'
import { push, writeConfig } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { inSeconds, runRelay } from '../../support/relay/relay-process.ts'
import { DAY_MS, MINUTE_MS, NO_CARRIER } from '../../support/runner/constants.ts'
import { movableClock } from '../../support/runner/movable-clock.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { testWith } from '../../support/runner/test-with.ts'
import { goodBody, json, openCarrier } from '../carrier/carrier-double.ts'

test('a recording plays each alert', () => {
  const played = globSync('test/core/ops/recorded-*.test.ts')
    .map((path) => readFileSync(path, 'utf8'))
    .join('')
  const alerts = [...readFileSync('ops/prometheus/alerts.yaml', 'utf8').matchAll(/alert: (\w+)/g)].map(([, alert = '']) => alert)
  expect(alerts.length).toBeGreaterThan(20)
  expect(alerts.filter((alert) => !played.includes(`${alert}: `))).toEqual([])
})

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

testWith('promtool')('pushes that stop while the carrier scans sound an alert until one comes', async () => {
  const recording = createRecording()
  const scanned: string[] = []
  const carrier = await carrierThatTells(() => scanned)
  const relay = await relayOfTest(inSeconds, { carrierUrl: carrier.url })
  const report = async (nth: number) => {
    const body = pushBody({ trackingIds: [`9000000${nth}`], eventTime: new Date().toISOString() })
    expect((await push(relay.publicUrl, body)).status).toBe(200)
  }
  for (const nth of [1, 2, 3, 4, 5, 6]) await report(nth)
  const heard = await recording.pass(2, scrapeOf(relay))
  // The carrier tells times in whole seconds, and this one must not be before the last push.
  scanned.push(new Date(Date.now() + 1000).toISOString().replace(/\.\d+/, ''))
  await untilShows(relay, 'relay_pushes_silent 1')
  const silent = await recording.pass(7, scrapeOf(relay))
  await report(7)
  await untilShows(relay, 'relay_pushes_silent 0')
  const again = await recording.pass(2, scrapeOf(relay))
  await carrier.close()
  recording.expectAlerts({ RelayPushesSilent: { [heard]: 'silent', [silent]: 'firing', [again]: 'silent' } })
})

testWith('promtool')('an endpoint that takes events slower than they come sounds an alert until it caught up', async () => {
  const recording = createRecording()
  const folder = temporaryFolder()
  const clock = movableClock(folder)
  const held: ServerResponse[] = []
  let isQuick = false
  const port = await listenInTest(
    createServer((request, response) => {
      request.resume()
      if (isQuick) response.end()
      else held.push(response)
    }),
  )
  await using relay = await runRelay(writeConfig(folder, NO_CARRIER, { delivery: { allowNetworks: ['127.0.0.0/8'] } }), clock.env)
  const operate = await operatorOf(relay)
  await operate('POST', '/relay/endpoints', { name: 'shop', url: `http://127.0.0.1:${port}/` })
  const behind = await recording.pass(50, scrapeOf(relay), async (minute) => {
    for (const nth of [1, 2]) await push(relay.publicUrl, pushBody({ trackingIds: ['9000'], location: `${minute} ${nth}` }))
    await expect.poll(() => held.length).toBe(1)
    clock.pass(MINUTE_MS)
    held.pop()?.end()
  })
  isQuick = true
  for (const response of held) response.end()
  await untilShows(relay, 'relay_endpoint_waiting{endpoint="shop"} 0')
  const well = await recording.pass(2, scrapeOf(relay))
  recording.expectAlerts({ RelayEndpointBehind: { 20: 'silent', [behind]: 'firing', [well]: 'silent' } })
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
