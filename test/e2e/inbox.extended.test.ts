import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { startWorld } from '../faults/world.ts'
import { answerBody, pushBody } from '../support/history/builders.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { ADMIN } from '../support/relay/relay.ts'
import { shipped } from '../support/runner/shipped.ts'
import { ownGroup, tieToTest } from '../support/runner/tied-process.ts'
import { changeStoredRows } from '../support/store/stored-rows.ts'

async function start() {
  const world = await startWorld({ delivery: { allowNetworks: ['127.0.0.0/8'] }, retention: { history: '30d' } })
  onTestFinished(() => world.stop())
  return { ...world, operator: await operatorOf(world) }
}

const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString()

/** Changes the times at which the expired pushes were received, as if the clock had been right. */
async function receiveAt(place: string, atMs: number): Promise<void> {
  await changeStoredRows(place, 'update inbox set received_at_ms = ? where state = 2', atMs)
}

async function inboxCommand(url: string, ...given: readonly string[]): Promise<string> {
  const args = [...shipped().args, 'inbox', ...given, '--url', url]
  const env = { PATH: process.env.PATH, RELAY_USERNAME: ADMIN.username, RELAY_PASSWORD: ADMIN.password }
  return await text(tieToTest(spawn(process.execPath, args, { ...ownGroup, env, stdio: ['ignore', 'pipe', 'inherit'] })).stdout)
}

test('pushes are listed and shown raw, and a recorded push cannot be reprocessed', async () => {
  const { operator, ...world } = await start()
  const good = pushBody({ trackingIds: ['60000001'], eventTime: daysAgo(1) })
  for (const body of [good, Buffer.from([0xff, 0x00])]) expect((await world.push(body)).status).toBe(200)
  const { body } = await operator('GET', '/relay/inbox?state=quarantined')
  expect(body).toMatchObject({ pushes: [{ id: '2', state: 'quarantined', reason: 'utf8', bodyBytes: 2, duplicates: 0 }], next: null })
  expect((await operator('GET', '/relay/inbox/2')).body).toMatchObject({ body: '/wA=', text: null })
  expect((await operator('GET', '/relay/inbox/1')).body).toMatchObject({ state: 'recorded', text: good.toString() })
  expect((await operator('GET', '/relay/inbox?limit=1')).body).toMatchObject({ pushes: [{ id: '2' }], next: '2' })
  const happened = JSON.parse(good.toString()).eventTime
  expect(await inboxCommand(world.internalUrl, '1')).toContain(`24 h after the event at ${happened}  60000001`)
  const reprocess = async (id: string) => {
    const answer = await operator('POST', `/relay/inbox/${id}/reprocess`)
    return [answer.status, answer.body.outcome ?? answer.body.type]
  }
  expect(await reprocess('2')).toEqual([200, 'quarantined'])
  expect(await reprocess('1')).toEqual([409, 'urn:parcel-relay:error:not_reprocessable'])
  for (const id of ['99', 'x', '-1']) expect(await reprocess(id)).toEqual([404, 'urn:parcel-relay:error:not_found'])
})

test('5.4: one command records and relays expired pushes when the clock is right', async () => {
  await using receiver = await startWebhookReceiver()
  const { operator, ...world } = await start()
  expect((await operator('POST', '/relay/endpoints', { name: 'shop', url: receiver.url })).status).toBe(201)
  const bodies = ['60000002', '60000003'].map((id) => pushBody({ trackingIds: [id], eventTime: daysAgo(40) }))
  for (const body of bodies) expect((await world.push(body)).status).toBe(200)
  expect((await world.get('/v1/status/60000002/latest')).status).toBe(404)
  expect((await world.inbox.rowOf(bodies[0] ?? '')).state).toBe('expired')
  await receiveAt(world.databasePath, Date.now() - 39 * 86_400_000)

  const out = await inboxCommand(world.internalUrl, '--reprocess', '--state', 'expired')
  expect(out).toMatch(/^\d+: recorded, 1 of 2\n\d+: recorded, 2 of 2\n$/)
  await expect.poll(() => receiver.pushes.map(({ body }) => body.toString()).toSorted()).toEqual(bodies.map(String).toSorted())
  for (const id of ['60000002', '60000003']) expect((await world.all(id)).statuses).toHaveLength(1)
})

test('one command asks for the parcels of quarantined pushes, and another dismisses the pushes', async () => {
  const { operator, ...world } = await start()
  const eventTime = daysAgo(1)
  for (const trackingIds of [['60000011', '60000014'], ['60000013']])
    world.carrier.says.set(trackingIds[0] ?? '', () => answerBody({ trackingIds, statuses: [{ eventTimestamp: eventTime }] }))
  const wrong = (...trackingIds: readonly string[]) => pushBody({ trackingIds, eventTime: 'soon' })
  const bodies = [
    pushBody({ trackingIds: ['60000013'], eventTime }),
    wrong('60000011', '60000014'),
    wrong('60000014'),
    wrong('60000012'),
    wrong('60000013'),
    Buffer.from([0xff, 0x00]),
  ]
  for (const body of bodies) expect((await world.push(body)).status).toBe(200)
  const dismiss = ['--dismiss', '--state', 'quarantined']
  expect(await inboxCommand(world.internalUrl, ...dismiss)).toMatch(
    /^5 pushes name 3 parcels\. The relay does not know 2 of them.* 1 push names no parcel that can be read\.\nNothing was dismissed/,
  )
  const refreshed = await inboxCommand(world.internalUrl, '--refresh')
  expect(refreshed.split('\n')).toEqual([
    '60000011: new, 1 of 3',
    '60000012: unknown to the carrier, 2 of 3',
    '60000013: known, 3 of 3',
    '5 pushes name 3 parcels; 1 was new to the relay. 1 push names no parcel that can be read.',
    '',
  ])
  expect((await world.all('60000011')).statuses).toHaveLength(1)
  const done: unknown = JSON.parse(await inboxCommand(world.internalUrl, ...dismiss, '--reason', 'event_time', '--yes', '--json'))
  expect(done).toEqual({ pushes: 4, parcels: 3, unknownParcels: 1, unreadable: 0, dismissed: 4 })
  expect((await operator('GET', '/relay/inbox?state=quarantined')).body).toMatchObject({ pushes: [{ reason: 'utf8' }] })
})
