import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { closeOpened, openCarrier } from '../../core/carrier/carrier-double.ts'
import { pushBody } from '../../support/history/builders.ts'
import { loggedInAt } from '../../support/portal/portal-visitor.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { push, SHOP } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { commandsOf, operatorEnv, runCommand } from '../../support/relay/run-command.ts'

afterAll(closeOpened)

const HOUR_MS = 3_600_000
const RULE = { name: 'no-scan', when: { status: ['Ingested'] }, notWithin: '1h', past: true }
const scan = (status: string, atMs: number, id = 'AB123456789SE') =>
  pushBody({ status, detailedStatus: status, eventTime: new Date(atMs).toISOString(), trackingIds: [id] })

async function start(sections = {}, carrierUrl?: string) {
  const relay = await relayOfTest({ watchdogs: [RULE], ...sections }, carrierUrl === undefined ? {} : { carrierUrl })
  const operate = await operatorOf(relay)
  const breaches = async (query = '') => Object((await operate('GET', `/relay/watchdogs/breaches${query}`)).body).breaches
  return { ...relay, operate, breaches }
}

test('9.3: a stalled parcel is asked about, told in the feed, and over with its next scan; commands and pages show it', async () => {
  const carrier = await openCarrier()
  const { operate, breaches, publicUrl, ...relay } = await start({}, carrier.url)
  await push(publicUrl, scan('Ingested', Date.now() - 2 * HOUR_MS))
  await vi.waitFor(async () => expect(await breaches()).toMatchObject([{ rule: 'no-scan', endedAt: null }]), 20_000)
  expect((await operate('GET', '/relay/watchdogs')).body).toMatchObject({
    watchdogs: [{ name: 'no-scan', notWithin: '1h', open: 1 }],
    heldSince: null,
  })
  const visitor = await loggedInAt(relay.internalUrl)
  const overview = async (by = visitor) => (await by.get('/')).text
  expect(await overview()).toMatch(/; 1 parcel is stalled<\/h1>[\s\S]*1 stalled[\s\S]*not at fault\. <a href="\/watchdogs"/)
  expect(await overview(await loggedInAt(relay.internalUrl, SHOP))).toMatch(/1 stalled[\s\S]*not at fault\.(?! <a)/)
  const env = operatorEnv(relay)
  const glance = async () => (await operate('GET', '/relay/overview')).body
  expect(await glance()).toMatchObject({
    verdict: 'works',
    headline: expect.stringMatching(/; 1 parcel is stalled$/),
    problems: [],
    watchdogs: { stalled: 1, isAll: true },
  })
  expect(await runCommand(['status'], env)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\w.*; 1 parcel is stalled\n[\s\S]*\nwatchdogs +1 stalled +parcel-relay watchdogs says which/),
  })
  expect((await runCommand(['watchdogs'], env)).stdout).toMatch(/no-scan\s+1\s[\s\S]*no-scan/)
  await push(publicUrl, scan('TerminalArrived', Date.now() - HOUR_MS))
  await vi.waitFor(async () => expect(await breaches()).toMatchObject([{ endedAt: expect.any(String) }]), 20_000)
  expect(await overview()).toContain('No rule finds a parcel stalled.')
  expect(await glance()).toMatchObject({ headline: expect.not.stringContaining('stalled'), watchdogs: { stalled: 0 } })
  expect((await runCommand(['status'], env)).stdout).toMatch(/\nwatchdogs +none stalled/)
  expect(await breaches('?open=true')).toEqual([])
  expect(await breaches('?parcel=AB123456789SE&rule=other')).toEqual([])
  const events = z.object({ events: z.array(z.object({ kind: z.string(), watchdog: z.object({ rule: z.string() }).optional() })) })
  const feed = events.parse((await operate('GET', '/relay/events?after=0')).body).events
  expect(feed.flatMap(({ kind, watchdog }) => (watchdog === undefined ? [] : [[kind, watchdog.rule]]))).toEqual([
    ['stalled', 'no-scan'],
    ['recovered', 'no-scan'],
  ])
  expect((await operate('GET', '/relay/watchdogs/breaches?parcel=NONE1')).status).toBe(404)
  expect((await operate('GET', '/relay/watchdogs/breaches?reference=NONE1')).status).toBe(404)
  expect((await operate('GET', '/relay/watchdogs/breaches?reference=%20')).status).toBe(400)
  expect((await operate('GET', '/relay/watchdogs/breaches?cursor=x')).status).toBe(400)
})

test('rules are tried on stored histories; a wrong rule is refused with what and where', async () => {
  const { operate, publicUrl, folder, ...relay } = await start({ watchdogs: [] })
  const nowMs = Date.now()
  await push(publicUrl, scan('Ingested', nowMs - 5 * HOUR_MS))
  const file = join(folder, 'rules.yaml')
  writeFileSync(
    file,
    'watchdogs:\n  - { name: tried, when: { status: [Ingested] }, notWithin: 2h }\n  - { name: stuck-out, when: { status: [Never] } }\n',
  )
  const env = operatorEnv(relay)
  expect((await runCommand(['watchdogs', 'try', file], env)).stdout).toMatch(
    /tried\s+AB123456789SE\s+\S+Z\s+still[\s\S]*tried: 1 time\nstuck-out: 0 times\n$/,
  )
  expect((await runCommand(['watchdogs', 'try', file, '--since', '1h'], env)).stdout).toBe(
    'No parcel would have been found stalled.\ntried: 0 times\nstuck-out: 0 times\n',
  )
  const wrong = await operate('POST', '/relay/watchdogs/try', [{ name: 'x', when: {} }])
  expect([wrong.status, wrong.body.detail]).toEqual([400, expect.stringContaining('0.when must name a status')])
  const twice = await operate('POST', '/relay/watchdogs/try', [RULE, { ...RULE, notWithin: '3h' }])
  expect([twice.status, twice.body.detail]).toEqual([400, expect.stringContaining('1.name must be unique')])
  expect((await runCommand(['watchdogs', 'try', join(folder, 'none.yaml')], env)).code).not.toBe(0)
})

test('9.4: a reload takes rules, and takes them away', async () => {
  const carrier = await openCarrier()
  const { operate, breaches, publicUrl, reloadWith } = await start({ watchdogs: [] }, carrier.url)
  await push(publicUrl, scan('Ingested', Date.now() - 2 * HOUR_MS))
  const reloaded = await reloadWith({ watchdogs: [RULE] })
  expect(reloaded.changed).toContain('watchdogs.no-scan')
  await vi.waitFor(async () => expect(await breaches()).toMatchObject([{ endedAt: null }]), 20_000)
  await reloadWith({ watchdogs: [] })
  await vi.waitFor(async () => expect(await breaches()).toMatchObject([{ endedAt: expect.any(String) }]), 20_000)
  expect((await operate('GET', '/relay/watchdogs')).body).toMatchObject({ watchdogs: [] })
})

test('9.5: while the carrier cannot be reached, no verdict is told; since when it is held is shown', async () => {
  const { operate, breaches, publicUrl } = await start({}, 'http://127.0.0.1:9')
  await push(publicUrl, scan('Ingested', Date.now() - 2 * HOUR_MS))
  await vi.waitFor(
    async () => expect((await operate('GET', '/relay/watchdogs')).body).toMatchObject({ waiting: 1, heldSince: expect.any(String) }),
    60_000,
  )
  expect(await breaches()).toEqual([])
})

test('which parcels of an order are late, and why, is one question, of commands, the API and the page', async () => {
  const carrier = await openCarrier()
  const { operate, breaches, publicUrl, ...relay } = await start({}, carrier.url)
  await push(publicUrl, scan('Ingested', Date.now() - 2 * HOUR_MS))
  await vi.waitFor(async () => expect(await breaches()).toHaveLength(1), 20_000)
  const why = 'Ingested, and nothing within 1h'
  expect(await breaches('?parcel=AB123456789SE')).toMatchObject([{ reference: null, why }])
  const command = commandsOf(relay)
  expect((await command('watchdogs')).stdout).not.toMatch(/order/i)
  expect((await operate('PUT', '/relay/parcels/AB123456789SE', { reference: 'ORDER-1207' })).status).toBe(200)
  expect((await operate('PUT', '/relay/parcels/OTHER12345', { reference: 'ORDER-1' })).status).toBe(201)
  expect(await breaches('?reference=ORDER-1207&open=true')).toMatchObject([{ reference: 'ORDER-1207', why }])
  expect(await breaches('?reference=ORDER-1')).toEqual([])
  const ofOrder = await command('watchdogs', '--reference', 'ORDER-1207')
  expect(ofOrder.stdout).toMatch(/ORDER-1207\s+\w+\s+no-scan\s+Ingested, and nothing within 1h/)
  // The answer comes first, and the rules of all parcels not at all.
  expect(ofOrder.stdout).toMatch(/^ORDER +PARCEL/i)
  expect(ofOrder.stdout).not.toMatch(/in effect for/i)
  expect((await command('watchdogs')).stdout).toMatch(/in effect for/i)
  expect((await command('watchdogs', '--reference', 'ORDER-1', '--ended')).stdout).toBe('No parcel is stalled.\n')
  expect((await command('watchdogs', '--reference', 'ORDER-1')).stdout).toBe('No parcel is stalled.\n')
  const refused = await command('watchdogs', '--parcel', 'ORDER-1207')
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringMatching(/hyphen\. --reference takes the number of an order/)])
  expect((await command('watchdogs', '--reference', 'ORDER-9')).stderr).toContain('No parcel belongs to an order with this number')
  expect((await command('watchdogs', '--help')).stdout.replaceAll(/\s+/g, ' ')).toContain(
    '"watchdogs list --help" has the options --rule, --parcel, --reference and --ended',
  )
  const visitor = await loggedInAt(relay.internalUrl)
  const all = (await visitor.get('/watchdogs')).text
  expect(all).toContain('href="/watchdogs?reference=ORDER-1207"')
  expect(all).toContain(`<small>${why}</small>`)
  const one = (await visitor.get('/watchdogs?reference=ORDER-1207')).text
  expect(one).toContain('Stalled now of the order ORDER-1207')
  expect(one).toContain(`<small>${why}</small>`)
  expect((await visitor.get('/watchdogs?reference=ORDER-1')).text).not.toContain(`<small>${why}</small>`)
  // Two hours late, an hour stalled: the scan ended it, and nothing since counts.
  await push(publicUrl, scan('TerminalArrived', Date.now() - 60_000))
  await vi.waitFor(async () => expect(await breaches('?open=true')).toEqual([]), 20_000)
  expect((await command('watchdogs', '--reference', 'ORDER-1207')).stdout).toBe('No parcel is stalled. What was and is over: --ended.\n')
  expect((await command('watchdogs', 'stalled', '--reference', 'ORDER-1207', '--ended')).stdout).toContain('ORDER-1207')
})
