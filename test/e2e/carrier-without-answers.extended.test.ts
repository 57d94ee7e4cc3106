import type { ServerResponse } from 'node:http'
import { expect, onTestFinished, test, vi } from 'vitest'
import { closeOpened, goodBody, json, openCarrier } from '../core/carrier/carrier-double.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { ADMIN, ask, logIn } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { commandsOf } from '../support/relay/run-command.ts'

const GOOD = 'AB123456789SE'
const bad = (at: number) => `AX${100_000_000 + at}SE`

const replies: readonly (readonly [string, (response: ServerResponse) => void])[] = [
  ['403', (response) => json(response, 403, '{}')],
  ['a page of HTML', (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Log in</title>')],
  ['a redirect', (response) => json(response, 302, '', { location: '/login' })],
  ['JSON of another shape', (response) => json(response, 200, '{"parcels":[]}')],
]

test.each(replies)('6.8: a carrier that answers every question with %s is a problem', async (_what, reply) => {
  onTestFinished(closeOpened)
  let isWell = true
  const carrier = await openCarrier({
    status: ({ url = '' }, response) => (isWell && url.includes(GOOD) ? json(response, 200, goodBody) : reply(response)),
  })
  const { internalUrl } = await relayOfTest(
    { poll: { cron: '0 0 1 1 *' }, limits: { unknownPerMinute: 10_000 } },
    { carrierUrl: carrier.url },
  )
  const admin = await logIn(internalUrl, ADMIN)
  const read = async (path: string) => JSON.stringify(await (await ask(internalUrl, admin, path)).json())
  const shop = await logIn(internalUrl)
  const askFor = async (from: number, count: number) => {
    for (let at = from; at < from + count; at++) await ask(internalUrl, shop, `/v1/status/${bad(at)}/all`)
  }
  expect((await ask(internalUrl, shop, `/v1/status/${GOOD}/all`)).status).toBe(200)

  await askFor(0, 60)
  expect(await read('/relay/upstream')).toContain('"breaker":{"state":"closed"')
  isWell = false
  await vi.waitFor(async () => {
    await askFor(Math.floor(performance.now()), 20)
    expect(await read('/relay/overview')).toMatch(/"kind":"carrier_failing".*"since":"20/)
  }, 60_000)
  await vi.waitFor(async () => expect(await read('/relay/operator-events')).toMatch(/"since":"20[^}]*"carrier_failing"/), 60_000)
  const portal = await loggedInAt(internalUrl)
  expect((await portal.get('/')).text).toMatch(/The carrier fails to answer <small>since/)
  // A parcel that is watched now has its first poll when the carrier answers again.
  const watched = await commandsOf({ internalUrl })('watch', 'BX123456789SE')
  expect(watched.stdout).toMatch(/since 20.*, so calls pause: the first polls are made when it answers again/)
  expect(await read('/relay/parcels?query=BX123456789SE')).toContain('"waitsForCarrier":true')
  for (const page of ['/parcels?query=BX', '/parcels/BX123456789SE'])
    expect((await portal.get(page)).text).toContain('when the carrier answers again')

  isWell = true
  // The relay probes by itself, with the parcel that was answered before, although it is too old to be polled any more.
  await vi.waitFor(async () => expect(await read('/relay/upstream')).toContain('"breaker":{"state":"closed"'), 60_000)
})
