import { afterAll, expect, test } from 'vitest'
import { closeOpened, json, openCarrier } from '../../core/carrier/carrier-double.ts'
import { answerBody } from '../../support/history/builders.ts'
import { distinctPushes, type Load, startLoad } from '../../support/network/push-load.ts'
import { startRequestServer } from '../../support/network/request-server.ts'
import { ADMIN, logIn, writeConfig } from '../../support/relay/relay.ts'
import { runRelay } from '../../support/relay/relay-process.ts'
import { partOf } from '../../support/runner/beside-control.ts'
import { DAY_MS } from '../../support/runner/constants.ts'
import { byForm } from '../../support/runner/long-form.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { changeStoredRows } from '../../support/store/stored-rows.ts'

afterAll(closeOpened)

const WATCHED = byForm(0, 2500, 10_000)
/** How many deliveries a second the endpoint allows. */
const RATE = 300
const POLLS_PER_SECOND = 200
/** So many pushes have a 99th percentile. The median of several turns counts. */
const PUSHES_PER_TURN = 400
const TURNS = byForm(0, 1, 3)
const RATIO = 2
const TRIES_MAX = 3
/** A relay may save up the rate of one second, and the way may delay events. */
const AHEAD_MAX = 1.5

const idOf = (nth: number) => String(82_000_000 + nth)

/** A carrier that knows for days what happened to every parcel of the list, and never pushed it. It knows no other parcels. */
async function openKnowingCarrier() {
  const eventTimestamp = new Date(Date.now() - 9 * DAY_MS).toISOString()
  return await openCarrier({
    status: (request, response) => {
      const id = /\/status\/(\w+)\/all/.exec(request.url ?? '')?.[1] ?? ''
      if (!id.startsWith('82')) return json(response, 404, '{}')
      const statuses = [{ status: 'DeliveryStarted', detailedStatus: 'OnItsWay', location: 'Found', eventTimestamp }]
      return json(response, 200, answerBody({ trackingIds: [id], statuses }).toString())
    },
  })
}

/** Opens the endpoint. `found`: how many events came that polls had found. */
async function openEndpoint() {
  const atMs: number[] = []
  let found = 0
  const server = await startRequestServer((_, body, response) => {
    atMs.push(performance.now())
    if (body.includes('"location":"Found"')) found += 1
    response.writeHead(200).end()
  })
  return { url: `http://127.0.0.1:${server.port}/hooks`, atMs, found: () => found, [Symbol.asyncDispose]: server[Symbol.asyncDispose] }
}

/** Returns by how many seconds of the rate events came too early, at most. */
function secondsAhead(atMs: readonly number[]): number {
  let [ahead, beforeMs, most] = [0, atMs[0] ?? 0, 0]
  for (const oneMs of atMs) {
    ahead = Math.max(0, ahead - (oneMs - beforeMs) / 1000) + 1 / RATE
    most = Math.max(most, ahead)
    beforeMs = oneMs
  }
  return most
}

/** Pushes on, and resolves with the 99th percentile of the next turns, in milliseconds. */
async function turnsOf(load: Load, turns: number): Promise<readonly number[]> {
  const first = load.answered()
  await load.untilAnswered(first + turns * PUSHES_PER_TURN)
  const answers = load.answers().slice(first)
  expect(answers.every(({ status }) => status === 200)).toBe(true)
  return Array.from({ length: turns }, (_, nth) => {
    const turn = answers.slice(nth * PUSHES_PER_TURN, (nth + 1) * PUSHES_PER_TURN)
    return partOf(
      turn.map(({ tookMs }) => tookMs),
      0.99,
    )
  })
}

/** Pushes without the list, then beside the first polls of its parcels. */
async function measure() {
  const carrier = await openKnowingCarrier()
  await using endpoint = await openEndpoint()
  const folder = temporaryFolder()
  const config = writeConfig(folder, carrier.url, {
    upstream: { ratePerSecond: POLLS_PER_SECOND, callsPerDay: 1_000_000 },
    endpoints: [{ name: 'shop', url: endpoint.url, sharedKey: 'the-key-of-this-endpoint', rate: RATE }],
    delivery: { allowNetworks: ['127.0.0.0/8'] },
    serve: { fetchMissingLanguage: false },
  })
  await (await runRelay(config)).stop()
  expect(await changeStoredRows(`${folder}/relay.db`, 'update endpoint set began_at_ms = ?', Date.now() - 21 * DAY_MS)).toBe(1)
  await using relay = await runRelay(config)
  const load = startLoad(relay.publicUrl, 4, distinctPushes(500).next, { restMs: 100 })
  await load.untilAnswered(PUSHES_PER_TURN)
  const headers = { authorization: `Bearer ${await logIn(relay.internalUrl, ADMIN)}`, 'content-type': 'text/csv' }
  const body = Array.from({ length: WATCHED }, (_, nth) => idOf(nth)).join('\n')
  const answer = await fetch(`${relay.internalUrl}/relay/parcels/watch`, { method: 'POST', body, headers })
  expect(await answer.json()).toMatchObject({ watched: WATCHED, created: WATCHED, failed: 0 })
  // The first polls come a minute after the list. Meanwhile nothing is polled.
  const control = await turnsOf(load, TURNS)
  await expect.poll(() => endpoint.found(), { timeout: 120_000 }).toBeGreaterThan(100)
  const polledBefore = carrier.asked.status
  const beside = await turnsOf(load, TURNS)
  const polled = carrier.asked.status - polledBefore
  const pushed = (await load.stop()).length
  await expect.poll(() => endpoint.atMs.length, { timeout: 300_000, interval: 500 }).toBe(WATCHED + pushed)
  expect([endpoint.found(), polled > 0]).toEqual([WATCHED, true])
  expect(secondsAhead(endpoint.atMs)).toBeLessThan(AHEAD_MAX)
  return partOf(beside, 0.5) / partOf(control, 0.5)
}

test(`pushes keep their pace beside the first polls of ${WATCHED} parcels for an endpoint weeks old`, async () => {
  // Another program may take a processor during one of the two halves.
  const ratios = [await measure()]
  while (Math.min(...ratios) > RATIO && ratios.length < TRIES_MAX) ratios.push(await measure())
  expect(Math.min(...ratios)).toBeLessThanOrEqual(RATIO)
})
