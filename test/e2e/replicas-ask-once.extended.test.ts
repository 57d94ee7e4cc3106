import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { closeOpened, goodBody, json, openCarrier } from '../core/carrier/carrier-double.ts'
import { fetchDocumented } from '../support/portal/api-document.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ADMIN, logIn, startTestRelay } from '../support/relay/relay.ts'
import { byForm } from '../support/runner/long-form.ts'
import { createLastingDatabase } from '../support/store/postgres-database.ts'

const QUESTIONS = byForm(40, 200)
const UNKNOWN = 'AB300000000SE'

const things = new AsyncDisposableStack()
things.defer(closeOpened)
afterAll(() => things.disposeAsync())

/** Two relays on one database, without scheduled polls. Only apps and operators cause calls. */
let relays: readonly Relay[]
let asked: Awaited<ReturnType<typeof openCarrier>>['asked']
type Relay = Awaited<ReturnType<typeof open>>

async function open(url: string, sections: object) {
  const folder = mkdtempSync(join(tmpdir(), 'parcel-relay-'))
  things.defer(() => rmSync(folder, { recursive: true, force: true }))
  const relay = await startTestRelay(folder, url, { ...sections })
  things.defer(() => relay.stop())
  return { ...relay, token: await logIn(relay.internalUrl, ADMIN) }
}

beforeAll(async () => {
  const carrier = await openCarrier({
    status: ({ url = '' }, response) =>
      void pause(300).then(() => (url.includes(UNKNOWN) ? json(response, 404, '{}') : json(response, 200, bodyOf(url)))),
  })
  asked = carrier.asked
  const shared = await onPostgres(await createLastingDatabase())
  const sections = { ...shared, poll: { cron: '0 0 1 1 *' }, limits: { unknownPerMinute: 100_000 } }
  relays = [await open(carrier.url, sections), await open(carrier.url, sections)]
})

/** Returns an answer in which each number belongs to a different parcel. */
const bodyOf = (url: string) => goodBody.replace('370000000000000001', /AB(\d+)SE/.exec(url)?.[1] ?? '')

const callsAbout = (number: string) => asked.urls.filter((url) => url.includes(number))

/** Repeats the request after a 503, as an app does. */
async function askOne({ internalUrl, token }: Relay, path: string, method: string) {
  for (let time = 1; ; time++) {
    const answer = await fetchDocumented(`${internalUrl}${path}`, { method, headers: { authorization: `Bearer ${token}` } })
    const body = await answer.text()
    if (answer.status !== 503 || time === 20) return { status: answer.status, body }
    await pause(500)
  }
}

/** Sends `count` requests to each relay at once. */
const askBoth = (count: number, path: string, method = 'GET') =>
  Promise.all(relays.flatMap((relay) => Array.from({ length: count }, () => askOne(relay, path, method))))

test(`P10: ${QUESTIONS} requests at each of two relays about one parcel cause one call`, async () => {
  const number = 'AB100000000SE'
  const answers = await askBoth(QUESTIONS, `/v1/status/${number}/all?language=en`)
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  expect(new Set(answers.map(({ body }) => body)).size).toBe(1)
  expect([callsAbout(number).length, asked.token]).toEqual([1, 1])
})

test('P10: requests for an unknown parcel at two relays cause one call and get a 404', async () => {
  const answers = await askBoth(50, `/v1/status/${UNKNOWN}/all?language=en`)
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]))
  expect(callsAbout(UNKNOWN)).toHaveLength(1)
})

test('simultaneous refreshes of a parcel by operators at two relays cause one poll', async () => {
  const number = 'AB200000000SE'
  await askBoth(1, `/v1/status/${number}/all?language=en`)
  const before = callsAbout(number).length
  const refreshed = await askBoth(1, `/relay/parcels/${number}/refresh`, 'POST')
  expect(refreshed.map(({ status, body }) => [status, JSON.parse(body)])).toEqual(
    [0, 1].map(() => [200, { identifier: number, outcome: 'recorded' }]),
  )
  const calls = callsAbout(number).slice(before)
  expect(calls).toHaveLength(new Set(calls).size)
})
