import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { closeOpened, goodBody, json, openCarrier } from '../carrier/carrier-double.ts'
import { onPostgres } from '../support/on-postgres.ts'
import { ADMIN, logIn, startTestRelay } from '../support/relay.ts'
import { temporaryFolder } from '../support/temporary.ts'

afterEach(closeOpened)

const NUMBER = 'AB123456789SE'

/** Two relays on one database, whose schedule sleeps: all that leaves, an app or an operator asked for. */
async function startTwo(status: NonNullable<NonNullable<Parameters<typeof openCarrier>[0]>['status']>) {
  const { url, asked } = await openCarrier({ status })
  const sections = { ...(await onPostgres()), poll: { cron: '0 0 1 1 *' }, limits: { unknownPerMinute: 100_000 } }
  const open = async () => {
    const relay = await startTestRelay(temporaryFolder(), url, sections)
    onTestFinished(() => relay.stop())
    return { ...relay, token: await logIn(relay.internalUrl, ADMIN) }
  }
  const relays = [await open(), await open()]
  const askOne = async ({ internalUrl, token }: (typeof relays)[number], path: string, method: string) => {
    const answer = await fetch(`${internalUrl}${path}`, { method, headers: { authorization: `Bearer ${token}` } })
    return { status: answer.status, body: await answer.text() }
  }
  /** As many answers of each relay, all asked for at once. */
  const askBoth = (count: number, path: string, method = 'GET') =>
    Promise.all(relays.flatMap((relay) => Array.from({ length: count }, () => askOne(relay, path, method))))
  return { asked, askBoth }
}

test('P10: 200 questions at each of two relays about one unknown parcel are one call, and as many equal answers', async () => {
  const { asked, askBoth } = await startTwo((_request, response) => void pause(300).then(() => json(response, 200, goodBody)))
  const answers = await askBoth(200, `/v1/status/${NUMBER}/all?language=en`)
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  expect(new Set(answers.map(({ body }) => body)).size).toBe(1)
  expect([asked.status, asked.token]).toEqual([1, 1])
})

test('P10: a parcel that the carrier does not know is one call over two relays, and a 404 at both', async () => {
  const { asked, askBoth } = await startTwo((_request, response) => void pause(300).then(() => json(response, 404, '{}')))
  const answers = await askBoth(50, `/v1/status/${NUMBER}/all?language=en`)
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]))
  expect(asked.status).toBe(1)
})

test('a refresh that operators order at two relays at once is one poll', async () => {
  const { asked, askBoth } = await startTwo((_request, response) => void pause(300).then(() => json(response, 200, goodBody)))
  await askBoth(1, `/v1/status/${NUMBER}/all?language=en`)
  const before = asked.status
  const refreshed = await askBoth(1, `/relay/parcels/${NUMBER}/refresh`, 'POST')
  expect(refreshed.map(({ status, body }) => [status, JSON.parse(body)])).toEqual(
    [0, 1].map(() => [200, { identifier: NUMBER, outcome: 'recorded' }]),
  )
  const languages = new Set(asked.urls.slice(before))
  expect(asked.urls.slice(before)).toHaveLength(languages.size)
})
