import { expect, onTestFinished, test } from 'vitest'
import { startWorld } from '../faults/world.ts'
import { answerBody } from '../support/history/builders.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { endpointOfTest, operatorOf } from '../support/relay/manage.ts'

test('the portal lists and counts the events that a webhook never received, and sends them once', async () => {
  const world = await startWorld()
  onTestFinished(() => world.stop())
  const id = await endpointOfTest(world, { name: 'shop', url: 'http://shop.internal/', enabled: false })
  const visitor = await loggedInAt(world.internalUrl)
  expect((await visitor.get('/')).text).not.toContain('Earlier events')
  const operate = await operatorOf(world)
  for (const parcel of [1, 2]) {
    const statuses = [{ eventTimestamp: '2026-03-01T10:00:00Z' }]
    world.carrier.says.set(`MI40000000${parcel}SE`, () => answerBody({ trackingIds: [`7520000${parcel}`], statuses }))
    await operate('POST', `/relay/parcels/MI40000000${parcel}SE/refresh`)
  }
  const overview = (await visitor.get('/')).text
  expect(overview).toContain('2 not sent')
  const [, form = ''] = /href="([^"]*replay=missing[^"]*)"/.exec(overview) ?? []
  const shown = (await visitor.get(form.replaceAll('&amp;', '&'))).text
  expect(shown).toMatch(/<details class="plain" open><summary>Replay deliveries/)
  expect(shown).toContain('<option value="missing" selected>')
  const counted = await visitor.post('/deliveries', { of: '', to: id, state: 'missing', since: '', do: 'count' })
  expect(counted.text).toContain('2 events of 2 parcels</strong> that shop never received')
  const [, time = ''] = /name="counted" value="(\d+)"/.exec(counted.text) ?? []
  const order = { of: '', to: id, state: 'missing', since: '', do: 'replay', counted: time }
  expect((await visitor.post('/deliveries', order)).text).toContain('2 events are queued</strong> for shop')
  expect((await visitor.post('/deliveries', order)).text).toContain('Nothing was replayed.')
  expect((await operate('GET', `/relay/deliveries?endpoint=${id}`)).body).toMatchObject({ deliveries: [{}, {}] })
  expect((await visitor.get('/')).text).not.toContain('Earlier events')
})
