import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { pushBody } from '../../support/history/builders.ts'
import { receiverOfTest } from '../../support/network/webhook-receiver.ts'
import { loggedInAt } from '../../support/portal/portal-visitor.ts'
import { push } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { commandsOf, operatorEnv, runCommand } from '../../support/relay/run-command.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'

const KEYS = ['a-shared-key-for-tests-only', 'another-key-for-tests-only']
const SECTIONS = { delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['1h'], jitter: 0 } }

test('commands add, test, show, rotate, disable and remove an endpoint', async () => {
  const receiver = await receiverOfTest()
  const relay = await relayOfTest(SECTIONS)
  const [run, env] = [commandsOf(relay), operatorEnv(relay)]
  expect((await run('endpoints')).stdout).toMatch(/^There is no endpoint yet.*endpoints add/)
  const added = await run('endpoints', 'add', 'shop', receiver.url, '--status', 'TerminalArrived', '--status', 'DeliverySucceeded')
  expect([added.code, added.stdout]).toEqual([0, expect.stringMatching(/^shop is added as number 1\..*\nIts key, .*: \S{40,}\n$/)])
  const headed = await runCommand(['endpoints', 'add', 'lab', receiver.url, '--header', 'Authorization=LAB_TOKEN'], {
    ...env,
    LAB_TOKEN: 'Bearer of-the-lab',
  })
  expect(headed.code).toBe(0)
  await run('endpoints', 'test', 'lab')
  await run('endpoints', 'add', 'all', receiver.url, '--backfill', '--rate', '5', '--refusals', 'skip')
  const settings = (name: string) => run('endpoints', 'show', name).then(({ stdout }) => stdout)
  expect(await settings('all')).toMatch(/^backfill +yes: .*\nrate +at most 5 attempts per second\nrefusals +skip: /m)
  expect(await settings('shop')).not.toMatch(/^(backfill|rate|refusals|headers) /m)
  expect(await settings('lab')).toMatch(/^headers +Authorization$/im)
  await run('endpoints', 'remove', 'all', '--yes')
  expect(receiver.pushes.at(-1)?.headers.authorization).toBe('Bearer of-the-lab')
  const unset = await runCommand(['endpoints', 'add', 'lab', receiver.url, '--header', 'Authorization=LAB_TOKEN'], env)
  expect([unset.code, unset.stderr]).toEqual([1, expect.stringContaining('needs the environment variable LAB_TOKEN, which is not set')])
  await run('endpoints', 'remove', 'lab', '--yes')
  const tried = await run('endpoints', 'test', 'shop')
  expect([tried.code, tried.stdout]).toEqual([0, expect.stringMatching(/^shop accepts the test push: 200, after \d+ ms\.\n$/)])
  receiver.answer(() => ({ status: 503, body: 'down \u001b[31mfor now' }))
  const refused = await run('endpoints', 'test', 'shop')
  expect([refused.code, refused.stdout]).toEqual([1, expect.stringContaining('does not accept the test push: 503')])
  expect((await run('endpoints', 'show', '1')).stdout).toMatch(/^filters +status TerminalArrived or DeliverySucceeded$/m)
  const rotated = await run('endpoints', 'rotate', 'shop')
  expect(rotated.stdout).toMatch(/^shop: both keys sign until \S+, then the new one alone\.\nIts key, which is shown only this once: /)
  expect(rotated.stderr).toBe('')
  expect((await run('endpoints', 'rotate', 'shop')).stderr).toMatch(
    /^warning: the key that was to take over at 2\S+ is dropped\. A receiver that already uses that key/,
  )
  expect((await run('endpoints', 'rotate', 'shop', '--now')).stdout).toBe('shop: the new key alone signs from now on.\n')
  expect((await run('endpoints', 'disable', 'shop')).stdout).toBe('shop is disabled: 0 deliveries for it until it is enabled.\n')
  expect((await run('endpoints')).stdout).toMatch(/^NAME +STATE .*\nshop +disabled \(operator\) /)
  const kept = await run('endpoints', 'remove', 'shop')
  expect(kept.stdout).toContain('Nothing was removed')
  expect((await run('endpoints', 'remove', 'shop', '--yes')).stdout).toBe('shop is removed.\n')
  expect(JSON.parse((await run('endpoints', '--json')).stdout)).toEqual({ endpoints: [] })
})

test('`endpoints set` changes what is named, and leaves every other setting as it was', async () => {
  const receiver = await receiverOfTest()
  const relay = await relayOfTest({ ...SECTIONS, endpoints: [{ name: 'fixed', url: receiver.url, sharedKey: KEYS[0] }] })
  const [run, env] = [commandsOf(relay), operatorEnv(relay)]
  const given = ['--status', 'TerminalArrived', '--detailed-status', 'ParcelUpdated', '--rate', '5', '--header', 'X-Shop=SHOP_TOKEN']
  await runCommand(['endpoints', 'add', 'shop', receiver.url, ...given], { ...env, SHOP_TOKEN: 'of-the-shop' })
  const shown = async () => JSON.parse((await run('endpoints', 'show', 'shop', '--json')).stdout)
  const before = await shown()
  const moved = await run('endpoints', 'set', 'shop', '--to', `${receiver.url}/moved`)
  expect([moved.code, moved.stderr, moved.stdout]).toEqual([0, '', expect.stringContaining('/moved')])
  expect(moved.stdout).toMatch(/^key +fingerprint [0-9a-f]{8},/m)
  expect(await shown()).toEqual({ ...before, url: `${receiver.url}/moved` })

  const all = ['--no-status', '--distribution-type', 'Home', '--no-rate', '--backfill', '--remove-header', 'X-Shop']
  expect((await run('endpoints', 'set', 'shop', ...all)).code).toBe(0)
  expect(await shown()).toMatchObject({
    filters: { ...before.filters, status: null, distributionType: ['Home'] },
    rate: null,
    backfill: true,
    headers: {},
    url: `${receiver.url}/moved`,
  })
  expect((await run('endpoints', 'set', 'shop', '--no-backfill')).code).toBe(0)
  expect(await shown()).toMatchObject({ backfill: false, filters: { distributionType: ['Home'] } })

  expect(await run('endpoints', 'set', 'shop')).toMatchObject({ code: 2, stdout: '' })
  const fixed = await run('endpoints', 'set', 'fixed', '--to', receiver.url)
  expect([fixed.code, fixed.stderr]).toEqual([1, expect.stringContaining('defined in the config file: change it there, and reload')])
})

test('an endpoint’s key has the same fingerprint as its key file, and the key is not shown', async () => {
  const folder = temporaryFolder()
  const files = KEYS.map((key, at) => {
    const file = join(folder, `${at}.key`)
    writeFileSync(file, `${key}\n`, { mode: 0o600 })
    return file
  })
  vi.stubEnv('KEY_OF_TEST', KEYS[0])
  onTestFinished(() => void vi.unstubAllEnvs())
  const defined = { fixed: KEYS[0], named: { env: 'KEY_OF_TEST' }, filed: { file: files[0] } }
  const endpoints = Object.entries(defined).map(([name, sharedKey]) => ({ name, url: 'http://127.0.0.1:9/', sharedKey }))
  const relay = await relayOfTest({ ...SECTIONS, endpoints })
  const [run, env] = [commandsOf(relay), operatorEnv(relay)]
  const printed = await run('fingerprint', ...files.flatMap((file) => ['--key-file', file]))
  const prints = [...printed.stdout.matchAll(/^[0-9a-f]{8}(?= {2}the key in )/gm)].map(([print]) => print)
  expect(new Set(prints).size).toBe(2)
  const added = await run('endpoints', 'add', 'shop', 'http://127.0.0.1:9/', '--key-file', files[0] ?? '')
  const shown = async (name: string) => (await run('endpoints', 'show', name)).stdout
  expect(await shown('fixed')).toContain(`fingerprint ${prints[0]}, from the config file\n`)
  expect(await shown('named')).toContain(`${prints[0]}, from the environment variable KEY_OF_TEST (a new value needs a restart)\n`)
  const visitor = await loggedInAt(relay.internalUrl)
  expect((await visitor.get('/webhooks/2')).text).toContain('It comes from the environment variable KEY_OF_TEST.')
  expect(await shown('filed')).toContain(`${prints[0]}, from the file ${files[0]} (a reload reads it again)\n`)
  expect(await shown('shop')).toMatch(new RegExp(`^key +fingerprint ${prints[0]}, in use since 2`, 'm'))
  const rotated = await runCommand(['endpoints', 'rotate', 'shop', '--key-env', 'NEXT'], { ...env, NEXT: KEYS[1] })
  expect(await shown('shop')).toMatch(new RegExp(`^new key +fingerprint ${prints[1]}, takes over at 2`, 'm'))
  for (const { code, stdout } of [added, rotated]) expect([code, KEYS.filter((key) => stdout.includes(key))]).toEqual([0, []])
  expect((await run('fingerprint')).code).toBe(2)
})

test('an unknown endpoint name is answered with the nearest name', async () => {
  const run = commandsOf(await relayOfTest(SECTIONS))
  expect((await run('endpoints', 'add', 'warehouse', 'http://127.0.0.1:9/')).code).toBe(0)
  const missed = await run('endpoints', 'retry', 'warehous')
  expect([missed.code, missed.stderr]).toEqual([
    1,
    expect.stringContaining('no endpoint has the name or id warehous; did you mean warehouse?'),
  ])
})

test('for an unknown delivery or parcel, the error names a similar one or the next command', async () => {
  const relay = await relayOfTest(SECTIONS)
  const run = commandsOf(relay)
  await run('endpoints', 'add', 'shop floor', 'http://127.0.0.1:9/')
  await push(relay.publicUrl, pushBody({ trackingIds: ['93000123'] }))
  for (const [args, ...said] of [
    [['replay', '99'], 'no delivery has the id 99: "parcel-relay deliveries" lists the ids'],
    [['retry', '99'], 'no delivery has the id 99'],
    [['deliveries', 'show', 'x'], 'no delivery has the id x'],
    [['replay', 'shop floor'], `is the name of an endpoint: "parcel-relay replay --endpoint 'shop floor' --since 24h"`],
    [['deliveries', 'skip', 'shop floor'], `"parcel-relay deliveries --endpoint 'shop floor'"`],
    [['forget', '93000132'], 'did you mean 93000123?', '"parcel-relay parcels 9300"'],
    [['deliveries', '--parcel', '93000132'], 'did you mean 93000123?'],
    [['replay', '--endpoint', 'shop floor', '--parcel', 'ZZ999999'], 'ZZ999999: no parcel has this identifier.'],
    [['endpoints', 'retry', 'shop flor'], 'no endpoint has the name or id shop flor; did you mean shop floor?'],
  ] as const) {
    const answer = await run(...args)
    expect([args, answer.code]).toEqual([args, 1])
    for (const words of said) expect(answer.stderr).toContain(words)
  }
})

test('`tail deliveries` refuses to begin with more than 200, and says how to list more', async () => {
  const asked = await runCommand(['tail', 'deliveries', '-n', '201'], {})
  expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining('"parcel-relay deliveries --limit 201" lists more')])
})

test('a filter with a value that no event has had is accepted with a warning', async () => {
  const filters = { status: ['Createt'] }
  const endpoints = [{ name: 'configured', url: 'http://127.0.0.1:9/', sharedKey: 'a-shared-key-for-tests-only', filters }]
  const relay = await relayOfTest({ ...SECTIONS, endpoints })
  const warning = 'filters.status: no parcel has had the status "Createt" so far; did you mean Created?'
  expect(relay.lines.map(({ message }) => message)).toContain(warning)
  const run = commandsOf(relay)
  const added = await run('endpoints', 'add', 'shop', 'http://127.0.0.1:9/', '--status', 'Createt', '--status', 'Ingested')
  expect([added.code, added.stderr]).toEqual([0, `warning: ${warning}\n`])
  const teleported = { status: 'Teleported', detailedStatus: 'TeleportedHome', distributionType: 'Beam' }
  await push(relay.publicUrl, pushBody({ trackingIds: ['70000002'], ...teleported }))
  const filtersOf = (status: string, detailed: string, distribution: string) =>
    ['--status', status, '--detailed-status', detailed, '--distribution-type', distribution] as const
  const known = await run('endpoints', 'add', 'lab', 'http://127.0.0.1:9/', ...filtersOf('Teleported', 'TeleportedHome', 'Beam'))
  expect([known.code, known.stderr]).toEqual([0, ''])
  const wrong = await run('endpoints', 'add', 'lab2', 'http://127.0.0.1:9/', ...filtersOf('Teleported', 'TeleportedHom', 'Beem'))
  expect(wrong.stderr).toBe(
    'warning: filters.detailedStatus: no event has had the detailed status "TeleportedHom" so far; did you mean TeleportedHome?\n' +
      'warning: filters.distributionType: no event has had the kind of delivery "Beem" so far; did you mean Beam?\n',
  )
})

test('commands list, show, retry, skip and resend what an endpoint refused', async () => {
  const receiver = await receiverOfTest()
  receiver.answer(() => ({ status: 500, body: 'out of order' }))
  const relay = await relayOfTest(SECTIONS)
  const run = commandsOf(relay)
  await run('endpoints', 'add', 'shop', receiver.url)
  await push(relay.publicUrl, pushBody({ trackingIds: ['70000001'] }))
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(1), { timeout: 60_000 })
  const listed = z.object({ deliveries: z.array(z.object({ id: z.string(), state: z.string(), attemptCount: z.number() })) })
  const list = async (...more: readonly string[]) =>
    listed.parse(JSON.parse((await run('deliveries', '--json', ...more)).stdout)).deliveries
  await vi.waitFor(async () => expect(await list('--endpoint', 'shop')).toMatchObject([{ attemptCount: 1 }]), { timeout: 60_000 })
  const [delivery] = await list('--state', 'retrying')
  const id = delivery?.id ?? ''
  expect((await run('endpoints', 'show', 'shop')).stdout).toMatch(/^state +active; it has accepted nothing for .+, since 2\S+Z$/m)
  expect((await run('deliveries')).stdout).toMatch(/^ID .*\n\d+ +shop +70000001 +TerminalArrived +retrying +1 +500 out of order +.* ago\n$/)
  const shown = (await run('deliveries', 'show', id)).stdout
  expect(shown).toContain(`POST ${receiver.url}\n`)
  expect(shown).toMatch(/\nwebhook-id: \S+\n/)
  expect(shown).toMatch(
    /\nATTEMPTED AT +TOOK +ANSWER\n\S+ +\d+ ms +500 out of order\n\nIt answers 500 .*Give its answer to the people who run it\.\n$/,
  )
  const early = await run('replay', id)
  expect([early.code, early.stderr]).toEqual([1, expect.stringContaining('has not ended')])
  expect((await run('retry', '--endpoint', 'shop')).stdout).toBe('shop: 1 delivery that still waits is due now.\n')
  await vi.waitFor(() => expect(receiver.pushes.length).toBeGreaterThan(1), { timeout: 60_000 })
  expect((await run('deliveries', 'skip', id)).stdout).toBe(`${id}: given up, shop\n`)
  await vi.waitFor(async () => expect(await list('--state', 'dead')).toHaveLength(1), { timeout: 60_000 })
  receiver.answer(() => 200)
  const before = receiver.pushes.length
  const dry = await run('replay', '--endpoint', 'shop', '--since', '2h', '--dry-run')
  expect(dry.stdout).toMatch(/^1 delivery about 1 parcel, the oldest from .* ago, would be sent to shop again\. Nothing was sent\.\n$/)
  expect((await run('deliveries', 'replay', id, '--dry-run')).stdout).toBe(`${id}: would be sent to shop again\n`)
  expect(receiver.pushes).toHaveLength(before)
  expect((await run('replay', '--endpoint', 'shop', '--since', '2h')).stdout).toBe('1 delivery queued for shop again.\n')
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(before + 1), { timeout: 60_000 })
})

test('retry, replay and deliveries with missing or wrong arguments are usage errors', async () => {
  const run = commandsOf({ internalUrl: 'http://127.0.0.1:9' })
  for (const args of [
    ['retry'],
    ['replay'],
    ['replay', '--endpoint', 'shop'],
    ['replay', '1', '--endpoint', 'shop'],
    ['deliveries', '--from', 'noon'],
  ])
    expect(await run(...args)).toMatchObject({ code: 2, stdout: '' })
})

test('parcels are found by the beginning of an identifier, and an empty result says so', async () => {
  const relay = await relayOfTest(SECTIONS)
  const run = commandsOf(relay)
  for (const id of ['71000001', '71000002', '72000001']) await push(relay.publicUrl, pushBody({ trackingIds: [id] }))
  expect((await run('parcels', '71')).stdout).toMatch(
    /^TRACKING NUMBER +TRACKING ID .*\nnot known yet +71000001 +TerminalArrived .*\nnot known yet +71000002 +TerminalArrived .*\n$/,
  )
  await push(relay.publicUrl, pushBody({ trackingIds: ['73000001', '73000002', '73000003'] }))
  const several = await run('parcels', '73')
  expect(several.stdout).toMatch(/\nnot known yet +73000001 \+2 +TerminalArrived /)
  expect(several.stderr).toMatch(/^The tracking number of 1 parcel is not known, .*\n"parcel-relay watch --file FILE"/)
  const first = await run('parcels', '--limit', '1')
  expect([first.code, first.stderr]).toEqual([0, expect.stringContaining('There are more than these 1')])
  expect((await run('parcels', '79')).stdout).toMatch(/identifier that begins with 79\.\n.*\n"parcel-relay refresh NUMBER"/)
  expect((await run('parcels', '--stopped', 'delivered')).stdout).toBe('No parcel matches.\n')
})
