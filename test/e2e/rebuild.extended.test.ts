import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { startWorld } from '../faults/world.ts'
import { pushBody } from '../support/history/builders.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { ADMIN } from '../support/relay/relay.ts'
import { shipped } from '../support/runner/shipped.ts'
import { ownGroup, tieToTest } from '../support/runner/tied-process.ts'
import { changeStoredRows } from '../support/store/stored-rows.ts'

const AT = '2026-03-01T09:00:00.000Z'

/** Starts a relay with two parcels. An entry of the first parcel has lost its text. */
async function start() {
  const receiver = await startWebhookReceiver()
  const world = await startWorld({ delivery: { allowNetworks: ['127.0.0.0/8'] }, retention: { history: '3650d', held: '3650d' } })
  onTestFinished(async () => {
    await world.stop()
    await receiver[Symbol.asyncDispose]()
  })
  const operator = await operatorOf(world)
  expect((await operator('POST', '/relay/endpoints', { name: 'shop', url: receiver.url })).status).toBe(201)
  await world.push(pushBody({ trackingIds: ['61000001'], eventTime: AT, location: 'Lund' }))
  await world.push(pushBody({ trackingIds: ['61000002'], location: 'Oslo' }))
  await expect.poll(() => receiver.pushes.length, { timeout: 60_000 }).toBe(2)
  const other = 'select content_id from sighting where at_ms <> ?'
  await changeStoredRows(world.databasePath, `update sighting set content_id = (${other}) where at_ms = ?`, Date.parse(AT), Date.parse(AT))
  const run = async (...args: readonly string[]) => {
    const relay = shipped()
    const env = {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: relay.env.NODE_COMPILE_CACHE,
      RELAY_USERNAME: ADMIN.username,
      RELAY_PASSWORD: ADMIN.password,
    }
    const child = tieToTest(spawn(process.execPath, [...relay.args, 'rebuild', ...args, '--url', world.internalUrl], { ...ownGroup, env }))
    const code = new Promise<number | null>((resolve) => child.on('close', resolve))
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
    return { code: await code, out, err }
  }
  const placeOf = async (id: string) =>
    JSON.stringify((await (await world.get(`/v1/status/${id}/latest`)).json()) as object).match(/"location":"(\w*)"/)?.[1]
  return { ...world, receiver, operator, run, placeOf }
}

test('a rebuild lists differences and corrects them; apps, the feed and operators see the result', async () => {
  const { operator, run, placeOf, receiver, ...world } = await start()
  const dry = await run('--dry-run')
  expect(dry).toMatchObject({ code: 0, err: 'comparing: 2 parcels\n' })
  expect(dry.out).toMatch(
    /^2 parcels compared: 1 differs, 1 of them in the history that apps get\n1 entry that differs, such as 61000001, entry \d+ \(location\)\n/,
  )
  expect(await placeOf('61000001')).toBe('Oslo')

  const done = await run('61000001', '--json')
  const job: unknown = JSON.parse(done.out)
  expect([done.code, job]).toMatchObject([
    0,
    { kind: 'rebuild', state: 'done', report: { parcels: 1, differing: 1, changes: { update: 1 } } },
  ])
  expect(await placeOf('61000001')).toBe('Lund')
  const feed = await (await world.get('/relay/events?after=0')).json()
  expect(feed).toMatchObject({ events: [{ kind: 'entry' }, { kind: 'entry' }, { kind: 'update', entry: { location: 'Lund' } }] })

  const again = await run()
  const [stored, derived] = [...again.out.matchAll(/^(?:stored|derived) +(\S{43})$/gm)].map(([, digest]) => digest)
  expect([again.code, again.out.split('\n')[0], stored]).toEqual([0, '2 parcels compared: nothing differs', derived])
  expect(receiver.pushes).toHaveLength(2)
  expect(await (await fetch(`${world.internalUrl}/metrics`)).text()).toMatch(/relay_rebuilt_parcels_total\{result="corrected"\} 1\n/)
  const { body } = await operator('GET', '/relay/audit?limit=3')
  expect(body.actions).toMatchObject([
    { action: 'store.rebuild_started', detail: { dryRun: false, parcels: 'all' } },
    { action: 'store.rebuild_started', detail: { dryRun: false, parcels: 1 } },
    { action: 'store.rebuild_started', detail: { dryRun: true, parcels: 'all' } },
  ])
})

test('a rebuild of an unknown parcel or an invalid identifier is refused', async () => {
  const { operator, run } = await start()
  expect(await run('61009999')).toEqual({ code: 1, out: '', err: expect.stringContaining('no parcel with the identifier 61009999') })
  const refused = async (body: unknown, query = '') => {
    const answer = await operator('POST', `/relay/rebuild${query}`, body)
    return [answer.status, answer.body.detail]
  }
  expect(await refused({ identifiers: ['a b'] })).toEqual([400, expect.stringContaining('Value 1 of identifiers is wrong.')])
  expect(await refused({ identifiers: [] })).toEqual([400, expect.stringContaining('identifiers must have at least 1 value')])
  expect(await refused({ parcels: ['61000001'] })).toEqual([400, expect.stringContaining('There is no member "parcels" here')])
  expect(await refused({}, '?dryrun=true')).toEqual([400, expect.stringContaining('did you mean "dryRun"')])
})

test('the portal starts a comparison, shows what it found, and refuses an unknown parcel', async () => {
  const { internalUrl } = await start()
  const visitor = await loggedInAt(internalUrl, ADMIN)
  const textOf = async () => (await visitor.get('/jobs')).text.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ')
  expect(await textOf()).toContain('Rebuild histories')
  expect((await visitor.post('/jobs/rebuild', { parcels: '', do: 'compare' })).headers.get('location')).toBe('/jobs')
  await expect
    .poll(textOf, { timeout: 60_000 })
    .toMatch(/Compare all histories 1 parcel differs.* 1 entry differs \( ?61000001 ?: entry \d+, location\)\. .*done 2 of 2 admin/)
  const refused = await visitor.post('/jobs/rebuild', { parcels: '61009999', do: 'rebuild' })
  expect([refused.status, refused.text]).toEqual([409, expect.stringContaining('no parcel with the identifier 61009999')])
})
