import { describe, expect, onTestFinished, test } from 'vitest'
import { closeOpened, goodBody, json, openCarrier } from '../core/carrier/carrier-double.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ask, logIn } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { commandsOf } from '../support/relay/run-command.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

const GOOD = 'AB123456789SE'
const WAIT = { timeout: 60_000 }

type Relay = Awaited<ReturnType<typeof relayOfTest>>

/** Opens a carrier that knows one parcel, and that answers every question with 403 when it is told to. */
async function openNightly() {
  onTestFinished(closeOpened)
  const night = { isOver: true }
  const { url: carrierUrl } = await openCarrier({
    status: ({ url = '' }, response) =>
      night.isOver
        ? json(response, url.includes(GOOD) ? 200 : 404, url.includes(GOOD) ? goodBody : '{}')
        : json(response, 403, '{"message":"Not before sunrise"}'),
  })
  return { night, carrierUrl }
}

const overviewOf = async (relay: Relay) => (await (await operatorOf(relay))('GET', '/relay/overview')).body
const failing = (since: unknown) => ({
  verdict: 'problems',
  problems: [expect.objectContaining({ kind: 'carrier_failing', since })],
  carrier: { standing: 'failing' },
})

/** Lets the outage begin, and returns its beginning as operators were told it. */
async function beginNight(relay: Relay, night: { isOver: boolean }): Promise<string> {
  const shop = await logIn(relay.internalUrl)
  expect((await ask(relay.internalUrl, shop, `/v1/status/${GOOD}/all`)).status).toBe(200)
  night.isOver = false
  const operator = await operatorOf(relay)
  let asked = 0
  let since = ''
  await expect
    .poll(async () => {
      await ask(relay.internalUrl, shop, `/v1/status/AX${100_000_000 + asked++}SE/all`)
      const { text } = await operator('GET', '/relay/operator-events?event=carrier_failing')
      since = /"since":"([^"]+)"/.exec(text)?.[1] ?? ''
      return since
    }, WAIT)
    .not.toBe('')
  return since
}

const QUIET = { poll: { cron: '0 0 1 1 *' }, limits: { unknownPerMinute: 10_000 } }

describe.each(['sqlite', 'postgres'] as const)('a night of refused questions on %s', (engine) => {
  test('6.8: a restart within an outage forgets neither that it lasts nor its beginning, until an answer', async () => {
    const { night, carrierUrl } = await openNightly()
    const [folder, sections] = [temporaryFolder(), { ...QUIET, ...(engine === 'postgres' ? await onPostgres() : {}) }]
    const before = await relayOfTest(sections, { folder, carrierUrl })
    const since = await beginNight(before, night)
    expect(await overviewOf(before)).toMatchObject(failing(since))
    await before.stop()

    const relay = await relayOfTest(sections, { folder, carrierUrl })
    expect(await overviewOf(relay)).toMatchObject(failing(since))
    const status = await commandsOf(relay)('status')
    expect(status.stdout).toContain(`The carrier fails to answer, since ${since}`)
    expect((await (await loggedInAt(relay.internalUrl)).get('/')).text).toContain(`<time datetime="${since}"`)
    expect((await (await operatorOf(relay))('GET', '/relay/upstream')).body).toMatchObject({ breaker: { since } })
    const logged = () => relay.lines.filter(({ level, message }) => level !== 'debug' && message.includes('the carrier'))
    expect(logged()[0]?.fields).toMatchObject({ since: new Date(since) })

    night.isOver = true
    // No poll is due in this test, so an operator has the carrier asked, as the runbook says.
    const operator = await operatorOf(relay)
    const asked = () => operator('GET', '/relay/check').then(() => overviewOf(relay))
    await expect.poll(asked, WAIT).toMatchObject({ problems: [], carrier: { standing: 'answers' } })
    expect(logged().map(({ message }) => message)).toContain('the carrier answers again')
  })
})

test('6.8: a replica that does not poll knows the outage of the poller, since when, and its end', async () => {
  const { night, carrierUrl } = await openNightly()
  const sections = { ...QUIET, ...(await onPostgres()) }
  const poller = await relayOfTest(sections, { carrierUrl })
  const other = await relayOfTest(sections, { carrierUrl })
  const since = await beginNight(poller, night)
  await expect.poll(() => overviewOf(other), WAIT).toMatchObject(failing(since))
  night.isOver = true
  const operator = await operatorOf(poller)
  const asked = () => operator('GET', '/relay/check').then(() => overviewOf(other))
  await expect.poll(async () => (await asked()).problems, WAIT).toEqual([])
})
