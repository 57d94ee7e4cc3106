import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { cookiesIn, follow } from '../support/portal/live-stream.ts'
import { createVisitor, loggedInAt } from '../support/portal/portal-visitor.ts'
import { formIn, keyIn } from '../support/portal/sent-form.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { createDatabase } from '../support/store/postgres-database.ts'

/** Starts two replicas. A person logs in at the first, and uses the second with the same cookie. */
async function start() {
  const sections = { ...(await onPostgres((await createDatabase('nothing')).url)), delivery: { allowNetworks: ['127.0.0.0/8'] } }
  const [one, other] = [await relayOfTest(sections), await relayOfTest(sections)]
  const atOne = await loggedInAt(one.internalUrl)
  const atOther = createVisitor(other.internalUrl)
  for (const [name, value] of atOne.jar) atOther.jar.set(name, value)
  return { one, other, atOne, atOther, reader: { headers: { cookie: cookiesIn(atOne.jar) } } }
}

test('on PostgreSQL, a session is valid at both replicas, and each shows the other’s changes', async () => {
  const { one, other, atOne, atOther, reader } = await start()
  const added = await atOther.post('/webhooks/new', { url: 'http://127.0.0.1:9/hook', name: 'till' })
  expect(added.status).toBe(201)
  const id = /\/webhooks\/(\d+)\/test"/.exec(added.text)?.[1] ?? ''
  expect((await atOne.get(`/webhooks/${id}`)).text).toContain('>till</h1>')
  // A form has the same hidden field `keys` at both replicas.
  const keys = /name="keys" value="([^"]+)"/.exec((await atOne.get(`/webhooks/${id}`)).text)?.[1] ?? ''
  expect((await atOther.post(`/webhooks/${id}/key`, { keys })).status).toBe(200)
  expect((await atOne.post(`/webhooks/${id}/key`, { keys })).status).toBe(409)

  await push(other.publicUrl, pushBody({ trackingIds: ['1001'] }))
  const [webhook, parcel] = [
    await follow(one.internalUrl, `/webhooks/${id}`, reader),
    await follow(one.internalUrl, '/parcels/1001', reader),
  ]
  await push(other.publicUrl, pushBody({ trackingIds: ['1001'], status: 'DeliveryStarted' }))
  await expect.poll(() => parcel.changes()).toBeGreaterThan(0)
  await atOther.post(`/webhooks/${id}/disable`)
  await expect.poll(() => webhook.changes()).toBeGreaterThan(0)
  expect((await atOne.get(`/webhooks/${id}`)).text).toContain('disabled')
})

test('W4: a key that is replaced by presses at two replicas is replaced once, and both show it', async () => {
  const { atOne, atOther } = await start()
  const added = await atOne.post('/webhooks/new', { url: 'http://127.0.0.1:9/hook', name: 'till' })
  const id = /\/webhooks\/(\d+)\/test"/.exec(added.text)?.[1] ?? ''
  for (let round = 0; round < 6; round++) {
    const fields = formIn((await atOne.get(`/webhooks/${id}`)).text, `/webhooks/${id}/key`)
    const presses = await Promise.all([atOne, atOther].map((visitor) => visitor.post(`/webhooks/${id}/key`, fields)))
    expect(presses.map(({ status }) => status)).toEqual([200, 200])
    const [one, other] = presses.map(({ text }) => keyIn(text))
    expect([other, one === null]).toEqual([one, false])
  }
  const audit = (await atOne.get('/audit')).text
  expect(audit.match(/key replaced|key_replaced/g)).toHaveLength(6)
})

test('a session that is logged out at one replica is over at the other, and its streams end', async () => {
  const { other, atOne, atOther, reader } = await start()
  const stream = await follow(other.internalUrl, '/', reader)
  expect((await atOther.get('/webhooks')).status).toBe(200)
  await atOne.post('/logout')
  expect((await atOther.get('/webhooks')).status).toBe(401)
  await stream.ended
})

test('an app that leaves the config loses its sessions at both replicas within a second', async () => {
  const { one, other, atOne, atOther, reader } = await start()
  const streams = [await follow(one.internalUrl, '/', reader), await follow(other.internalUrl, '/', reader)]
  expect([(await atOne.get('/webhooks')).status, (await atOther.get('/webhooks')).status]).toEqual([200, 200])
  const begun = performance.now()
  await Promise.all([one, other].map(({ reloadWith }) => reloadWith({ apps: [] })))
  for (const visitor of [atOne, atOther]) expect((await visitor.get('/webhooks')).status).toBe(401)
  await Promise.all(streams.map(({ ended }) => ended))
  expect(performance.now() - begun).toBeLessThan(2000)
})
