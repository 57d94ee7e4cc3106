import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { startWorld } from '../faults/world.ts'
import { answerBody, pushBody } from '../support/history/builders.ts'
import { listenInTest } from '../support/network/listen.ts'
import { commandsOf } from '../support/relay/run-command.ts'

const STATUSES = ['2026-03-01T11:00:00Z', '2026-03-01T10:00:00Z'].map((eventTimestamp) => ({ eventTimestamp }))

async function start() {
  const world = await startWorld()
  onTestFinished(() => world.stop())
  const run = commandsOf(world)
  await run('endpoints', 'add', 'shop', 'http://shop.internal/', '--disabled')
  for (const parcel of [1, 2])
    world.carrier.says.set(`MI30000000${parcel}SE`, () => answerBody({ trackingIds: [`7510000${parcel}`], statuses: STATUSES }))
  return { ...world, run, refresh: () => run('refresh', 'MI300000001SE', 'MI300000002SE') }
}

test('replay --missing lists, counts and sends once each event that an endpoint never received', async () => {
  const { run, refresh } = await start()
  await refresh()
  const replay = (...args: readonly string[]) => run('replay', '--endpoint', 'shop', '--missing', ...args)
  expect((await run('deliveries', '--endpoint', 'shop')).stdout).toBe('No delivery matches.\n')
  const dry = await replay('--dry-run', '--limit', '3')
  expect(dry.stdout).toMatch(
    /^4 events about 2 parcels, the first recorded .* ago, would be sent to shop\. Nothing was sent\.\n\nSEQUENCE +PARCEL +STATUS +HAPPENED +RECORDED\n(\d+ +(MI30|7510)\S+ +TerminalArrived +2026-03-01T1\S+ +.* ago\n){3}$/,
  )
  expect(dry.stderr).toContain('There are more than these 3')
  const json = JSON.parse((await replay('--dry-run', '--json', '--parcel', 'MI300000001SE')).stdout)
  expect(json).toMatchObject({ count: 2, parcels: 1, more: false, oldestQueuedAt: null, oldestRecordedAt: expect.any(String) })
  expect(json.events).toMatchObject([{ eventTimestamp: '2026-03-01T10:00:00Z' }, { eventTimestamp: '2026-03-01T11:00:00Z' }])
  const both = ['--parcel', 'MI300000001SE', '--parcel', '75100002'] as const
  expect((await replay(...both)).stdout).toBe('2 events about MI300000001SE queued for shop.\n2 events about 75100002 queued for shop.\n')
  const all = 'The endpoint has received all backfill that matches, or its filters do not take it.'
  expect((await replay()).stdout).toBe(`0 events queued for shop. ${all}\n`)
  expect((await replay('--dry-run')).stdout).toBe(`0 events would be sent to shop. Nothing was sent. ${all}\n`)
  const { deliveries } = JSON.parse((await run('deliveries', '--endpoint', 'shop', '--json')).stdout)
  expect(deliveries).toHaveLength(4)
})

test('options that do not fit --missing, or that need it, are refused with the reason', async () => {
  const { run } = await start()
  for (const [args, reason] of [
    [['--missing', '--of', 'shop'], 'must not have "of" or "state" together with "missing"'],
    [['--missing', '--state', 'dead'], 'must not have "of" or "state" together with "missing"'],
    [['--since', '2h', '--until', '1h'], 'must not have "until" without "missing"'],
  ] as const)
    expect(await run('replay', '--endpoint', 'shop', ...args)).toMatchObject({ code: 1, stderr: expect.stringContaining(reason) })
})

test('refresh, status and inbox name the events that were not sent, and the command to send them', async () => {
  const { run, refresh, push } = await start()
  expect((await run('status')).stdout).not.toMatch(/^backfill/m)
  const command = 'parcel-relay replay --endpoint shop --missing --dry-run'
  const note = `4 events were recorded as backfill and not sent to shop. See them with ${command}; without --dry-run it sends them.\n`
  expect((await refresh()).stdout).toBe(`MI300000001SE: recorded (1 of 2)\nMI300000002SE: recorded (2 of 2)\n${note}`)
  expect((await run('status')).stdout).toMatch(new RegExp(`^backfill {3}not sent +4 events of the last 24 h, to shop: ${command}$`, 'm'))
  await push(pushBody({ trackingIds: ['75100002', '75100009'], eventTime: 'yesterday' }))
  expect((await run('inbox', '--refresh')).stdout).toContain(
    `2 events were recorded as backfill and not sent to shop. See them with ${command}`,
  )
  await run('replay', '--endpoint', 'shop', '--missing')
  expect((await refresh()).stdout).toBe('MI300000001SE: recorded (1 of 2)\nMI300000002SE: recorded (2 of 2)\n')
  expect((await run('status')).stdout).not.toMatch(/^backfill/m)
})

test('status says that a resend is under way instead of offering one', async () => {
  const { run, refresh } = await start()
  await refresh()
  const overview = JSON.parse((await run('status', '--json')).stdout)
  const [{ endpoint }] = overview.missing.endpoints
  const resends = [{ endpoint, job: '12', queued: 3200 }]
  const relay = createServer((req, res) => {
    res.setHeader('content-type', 'application/json')
    res.end(JSON.stringify(req.method === 'POST' ? { token: 'any' } : { ...overview, missing: { ...overview.missing, resends } }))
  })
  const internalUrl = `http://127.0.0.1:${await listenInTest(relay)}`
  const { stdout } = await commandsOf({ internalUrl })('status')
  expect(stdout).toMatch(/^backfill {3}resending +3,200 events queued for shop by job 12 so far; 4 of the last 24 h left$/m)
  expect(stdout).not.toContain('parcel-relay replay')
})

test('watch says which endpoints do not get the earlier events of a new parcel', async () => {
  const { run } = await start()
  const first = await run('watch', 'MI300000001SE')
  expect(first.stdout).toMatch(
    /^MI300000001SE: watched, new to the relay\nEarlier events, which the first polls find, are backfill and not sent to shop\. .*--endpoint shop --missing /,
  )
  expect((await run('watch', 'MI300000001SE')).stdout).toBe('MI300000001SE: watched\n')
})
