import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startWorld } from '../../faults/world.ts'
import { answerBody, pushBody } from '../../support/history/builders.ts'
import { receiverOfTest } from '../../support/network/webhook-receiver.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { push } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { commandsOf, operatorEnv, runCommand } from '../../support/relay/run-command.ts'

test('status shows the verdict first, then each problem with what to do, and exits with 1', async () => {
  const receiver = await receiverOfTest()
  receiver.answer(() => 503)
  const relay = await relayOfTest({ delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['1h'] } })
  const run = commandsOf(relay)
  const fresh = await run('status')
  expect([fresh.code, fresh.stdout]).toEqual([0, expect.stringMatching(/^Ready: waiting for the first push\b/)])
  const misdirected = await fetch(`${relay.publicUrl}/webhook/status?x=1`, {
    method: 'POST',
    body: '{}',
    headers: { 'x-service-hmac-sha256': 'any' },
  })
  expect(misdirected.status).toBe(404)
  expect((await run('status')).stdout).toMatch(/^ +wrong path +POST \/webhook\/status: 404, 1 time since \S+Z$/m)
  await run('endpoints', 'add', 'shop', receiver.url)
  for (let id = 73_000_000; id < 73_000_030; id++) await push(relay.publicUrl, pushBody({ trackingIds: [String(id)] }))
  const operate = await operatorOf(relay)
  await vi.waitFor(async () => expect((await operate('GET', '/relay/overview')).body).toMatchObject({ verdict: 'problems' }), {
    timeout: 60_000,
  })
  await push(relay.publicUrl, Buffer.from([0xff]))
  const { code, stdout } = await run('status')
  expect(code).toBe(1)
  expect(stdout).toMatch(/^2 problems\n\nshop fails, since \S+ \(/)
  expect(stdout).toMatch(/\n\nAlso: 1 request at \S+ came with a signature to another path /)
  expect(stdout).toMatch(
    /\n {2}It answers 503: it can be reached, but fails inside\.\n {2}\d+ events wait, the oldest for .*\. None is lost: they are sent in order once it answers with 2xx\. If every attempt fails until \S+, the relay disables it, and its events keep waiting\.\n/,
  )
  expect(stdout).toContain('  -> When it is mended: parcel-relay endpoints retry shop.\n')
  expect(stdout).toContain(`  Runbook: ${relay.internalUrl}/docs/runbooks#endpoint_failing\n`)
  expect(stdout).toContain('1 push is in quarantine')
  expect(stdout).toMatch(/^carrier +\w.* {2,}has not answered since the relay started; \d+ of today's/m)
  expect(stdout).toMatch(/^endpoints +failing +0 delivering, 0 untried, 1 failing, 0 disabled$/m)
  expect(stdout).not.toContain('\u001b[')
  expect(JSON.parse((await run('status', '--json')).stdout)).toMatchObject({
    verdict: 'problems',
    problems: [{ endpoint: 'shop' }, { severity: 'warning' }],
  })
})

test('status says if the carrier was not asked yet; parcels lists what the carrier does not know', async () => {
  const world = await startWorld()
  onTestFinished(() => world.stop())
  const run = commandsOf(world)
  const row = async (name: string) => (await run('status')).stdout.split('\n').find((line) => line.startsWith(name)) ?? ''
  expect(await row('carrier')).toMatch(
    / +not asked yet +not asked about a parcel since the relay started; (1 of .* calls is used, logins included|0 of .* calls are used)$/,
  )
  world.carrier.says.set('UN300000002SE', () => answerBody())
  for (const number of ['UN300000001SE', 'UN300000002SE', 'UN300000003SE']) await run('watch', number)
  expect((await run('parcels', '--unknown')).stdout).toBe('No parcel matches.\n')
  await run('refresh', 'UN300000001SE', 'UN300000002SE')
  expect((await run('parcels', '--unknown')).stdout).toMatch(/^TRACKING NUMBER .*\nUN300000001SE +never +in .*\n$/)
  expect((await run('parcels', 'UN', '--unknown')).stdout).toMatch(/^TRACKING NUMBER .*\nUN300000001SE .*\n$/)
  expect(await row('carrier')).toMatch(/ +the last call was answered +answered .* ago; \d of today's [\d,]+ calls are used$/)
  expect(await row('parcels')).toMatch(/ 3 known, 3 polled, \d due now$/)
  // A parcel from a push is no longer polled if the carrier does not know any of its identifiers.
  await world.push(pushBody({ trackingIds: ['75000001'] }))
  await run('refresh', '75000001')
  expect(await row('parcels')).toMatch(/, 1 given up as unknown to the carrier \(parcel-relay parcels --stopped unknown\)$/)
  expect((await run('parcels', '--stopped', 'unknown')).stdout).toMatch(
    /^TRACKING NUMBER .*\nnot known yet +75000001 +TerminalArrived .* unknown\n$/,
  )
  expect((await run('parcels', '--unknown')).stdout).toMatch(/\nnot known yet +75000001 +TerminalArrived .* unknown\n$/)
})

test('status exits with 0 for a few pushes in quarantine, which can wait, and with 1 for many', async () => {
  const relay = await relayOfTest()
  const run = commandsOf(relay)
  const hold = async (count: number) => {
    for (let nth = 0; nth < count; nth++) await push(relay.publicUrl, Buffer.from(`not JSON ${count} ${nth}`))
  }
  await hold(9)
  expect(await run('status')).toMatchObject({ code: 0, stdout: expect.stringContaining('9 pushes are in quarantine') })
  await hold(1)
  expect(await run('status')).toMatchObject({ code: 1, stdout: expect.stringContaining('10 pushes are in quarantine') })
})

test('status says how many pushes got 503 and when, even after a restart with enough disk', async () => {
  const full = await relayOfTest({ limits: { freeSpaceMin: '1024GB' } })
  for (let nth = 0; nth < 3; nth++) expect((await push(full.publicUrl, pushBody({ trackingIds: [`7300000${nth}`] }))).status).toBe(503)
  const during = await commandsOf(full)('status')
  expect([during.code, during.stdout]).toEqual([1, expect.stringContaining('Pushes were answered with 503, 3 times')])
  // While pushes get 503, the relay still stores settings, as the runbook says.
  expect((await commandsOf(full)('endpoints', 'add', 'shop', 'http://shop.internal/', '--backfill', '--disabled')).code).toBe(0)
  await full.stop()
  const relay = await relayOfTest({}, { folder: full.folder })
  const after = await commandsOf(relay)('status')
  expect([after.code, after.stdout]).toEqual([
    0,
    expect.stringMatching(
      /^1 problem\n(?: {2}.*\n)*\nPushes were answered with 503, 3 times\n {2}3 requests (?:at \S+Z|from \S+Z until \S+Z)\.\n/,
    ),
  ])
  expect(after.stdout).toContain('ask it to send again what got 503 between these times')
})

test('status says how many of the pushes that got 503 have come again', async () => {
  const relay = await relayOfTest()
  const run = commandsOf(relay)
  const store = join(relay.folder, 'relay.db')
  renameSync(store, `${store}.away`)
  let id = 73_100_000
  const refused: Buffer[] = []
  // The relay accepts pushes until it notices that its store is gone.
  while (refused.length < 2) {
    const body = pushBody({ trackingIds: [String(id++)] })
    if ((await push(relay.publicUrl, body)).status === 503) refused.push(body)
  }
  for (const body of refused) expect((await push(relay.publicUrl, body)).status).toBe(503)
  renameSync(`${store}.away`, store)
  const expectTaken = async (body: Buffer = Buffer.alloc(0)) => expect((await push(relay.publicUrl, body)).status).toBe(200)
  await vi.waitFor(() => expectTaken(refused[0]), { timeout: 60_000 })
  expect((await run('status')).stdout).toContain('At most 2 different pushes were refused, and at least 1 has come again.')
  for (const body of refused) await expectTaken(body)
  const { stdout } = await run('status')
  expect(stdout).toMatch(/^ +come again +2 pushes that were answered with 503 from \S+Z until \S+Z: all have come again$/m)
  expect(stdout).not.toMatch(/^Pushes were answered with 503/m)
})

test('status finds the relay by the address in a config file, as check does', async () => {
  const relay = await relayOfTest()
  const { RELAY_URL: _, ...env } = operatorEnv(relay)
  const config = join(relay.folder, 'relay.yaml')
  // The port of a test is free only at its start, so the file gets it afterwards.
  writeFileSync(
    config,
    readFileSync(config, 'utf8').replace(
      /internal:\n(.*)host: 127.0.0.1\n.*port: 0/,
      `internal:\n$1host: 127.0.0.1\n$1port: ${new URL(relay.internalUrl).port}`,
    ),
  )
  const found = await runCommand(['status', '--config', config], env)
  expect([found.stderr, found.stdout]).toEqual(['', expect.stringMatching(/^Ready: /)])
  const missing = join(relay.folder, 'none.yaml')
  const lost = await runCommand(['status', '--config', missing], env)
  expect([lost.code, lost.stdout, lost.stderr]).toEqual([1, '', expect.stringContaining(`${missing}:1:1 the config file cannot be read`)])
  // An address that is given counts.
  const given = await runCommand(['status', '--config', missing, '--url', relay.internalUrl], env)
  expect([given.code, given.stdout]).toEqual([0, expect.stringMatching(/^Ready: /)])
})
