import { expect, onTestFinished, test, vi } from 'vitest'
import { closeOpened, json, openCarrier } from '../core/carrier/carrier-double.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { ADMIN, ask, CARRIER_LOGIN, logIn } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'

const upstreamOf = (password: string) => ({ upstream: { ...CARRIER_LOGIN, password } })

/** Starts a relay with a wrong password and no parcels, and a carrier that answers status requests with 429. */
async function start() {
  onTestFinished(closeOpened)
  const carrier = await openCarrier({
    // The carrier refuses the first login, as if the password were mistyped.
    token: (_request, response, count) => (count === 1 ? json(response, 401, '{}') : json(response, 200, '{"token":"t"}')),
    status: (_request, response) => json(response, 429, '{}', { 'retry-after': '80' }),
  })
  const relay = await relayOfTest({ ...upstreamOf('mistyped'), poll: { cron: '0 0 1 1 *' } }, { carrierUrl: carrier.url })
  const visitor = await loggedInAt(relay.internalUrl)
  return { ...relay, ...carrier, visitor }
}

test('a wrong password is shown after the start, and a reload with the right one ends the error', async () => {
  const world = await start()
  const read = async (path: string) => await (await ask(world.internalUrl, await logIn(world.internalUrl, ADMIN), path)).json()
  const ready = async () => await (await fetch(`${world.internalUrl}/readyz`)).json()
  const upstream = () => read('/relay/upstream')

  await vi.waitFor(async () => expect(await ready()).toMatchObject({ status: 'ready', upstream: { state: 'upstream_auth' } }))
  expect([world.asked.token, world.asked.status]).toEqual([1, 0])
  expect(await upstream()).toMatchObject({
    credentials: 'refused',
    refusal: { at: expect.any(String), by: 'token_endpoint', retrySeconds: expect.any(Number) },
    lastFailure: { reason: 'credentials' },
    budget: { callsToday: 1 },
  })
  expect((await world.visitor.get('/')).text).toContain('The carrier’s login refused the user name and password')

  // The relay reports the end of a refusal only if it reported the refusal.
  await vi.waitFor(async () => expect(JSON.stringify(await read('/relay/operator-events'))).toContain('credentials_refused'))
  await world.reloadWith(upstreamOf('right'))
  await vi.waitFor(async () => expect(await upstream()).toMatchObject({ credentials: 'obtained', refusal: null }))
  const token = await logIn(world.internalUrl)
  expect((await ask(world.internalUrl, token, '/v1/status/AB123456789SE/all')).status).toBe(503)
  expect(await ready()).toMatchObject({ upstream: { state: 'rate_limited', credentials: 'obtained', lastFailure: 'rate_limited' } })
  const page = (await world.visitor.get('/carrier')).text
  expect(page).toContain('it asked for fewer calls (429)')
  expect(page).not.toContain('upstream.password')
  await vi.waitFor(async () => expect(JSON.stringify(await read('/relay/operator-events'))).toContain('credentials_accepted'))
})
