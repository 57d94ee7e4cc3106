import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { closeOpened, json, openCarrier } from '../core/carrier/carrier-double.ts'
import { pushBody } from '../support/history/builders.ts'
import { fetchDocumented } from '../support/portal/api-document.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { ADMIN, ask, logIn, push, SHOP } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

const shape = z.object({ tallies: z.array(z.object({ from: z.string(), counts: z.record(z.string(), z.number()) })) })

async function sumOf(url: string, kind: string): Promise<Readonly<Record<string, number>>> {
  const token = await logIn(url, ADMIN)
  const answer = await fetchDocumented(`${url}/relay/tallies?span=day&kind=${kind}`, { headers: { authorization: `Bearer ${token}` } })
  const sum: Record<string, number> = {}
  for (const { counts } of shape.parse(await answer.json()).tallies)
    for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count
  return sum
}

test('counts survive a restart, and calls are counted by who caused them', async () => {
  onTestFinished(closeOpened)
  const carrier = await openCarrier({ status: (_request, response) => json(response, 404, '{}') })
  const folder = temporaryFolder()
  const start = () => relayOfTest({ poll: { cron: '0 0 1 1 *' } }, { folder, carrierUrl: carrier.url })
  const first = await start()
  const body = pushBody({ trackingIds: ['1001'] })
  for (let at = 0; at < 3; at++) expect((await push(first.publicUrl, body)).status).toBe(200)
  expect((await push(first.publicUrl, 'not understood')).status).toBe(200)
  expect((await ask(first.internalUrl, await logIn(first.internalUrl, SHOP), '/v1/status/ZZ999/latest')).status).toBe(404)
  await first.stop()
  const second = await start()
  expect(await sumOf(second.internalUrl, 'pushes')).toMatchObject({ recorded: 1, duplicate: 2, quarantined: 1 })
  const calls = await sumOf(second.internalUrl, 'calls')
  expect(calls[`app:${SHOP.username}`]).toBe(1)
  expect(calls.token).toBeGreaterThan(0)
  expect(Object.keys(await sumOf(second.internalUrl, 'disk'))).toEqual(['free'])
  const visitor = await loggedInAt(second.internalUrl)
  expect((await visitor.get('/')).text).toContain('aria-label="pushes, last 24 hours: 4, refused: 0"')
  const page = (await visitor.get('/carrier')).text
  expect(page).toMatch(/Apps’ questions<\/th><td role="cell" data-l="Calls" class="n">1</)
  expect(page).toContain('aria-label="Last 24 hours: 4 pushes, 0 missed"')
})

test('an unknown kind and an app that is not an operator are refused', async () => {
  const relay = await relayOfTest()
  const admin = await logIn(relay.internalUrl, ADMIN)
  for (const query of ['kind=everything', 'kind=endpoint:', 'span=week', 'from=yesterday', 'kind=pushes&kind=polls'])
    expect((await ask(relay.internalUrl, admin, `/relay/tallies?${query}`)).status).toBe(400)
  expect((await ask(relay.internalUrl, await logIn(relay.internalUrl, SHOP), '/relay/tallies')).status).toBe(403)
})
