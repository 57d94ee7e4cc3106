import { describe, expect, test, vi } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { fetchDocumented } from '../support/portal/api-document.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ADMIN, ask, logIn, push, SHOP } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'

const STORES = [
  { name: 'sqlite', sections: async () => ({}) },
  { name: 'postgres', sections: async () => await onPostgres() },
]
const SECRET = 'a-secret-that-nobody-may-see'

describe.each(STORES)('the audit trail over HTTP on $name', ({ sections }) => {
  async function start() {
    const receiver = await receiverOfTest()
    const relay = await relayOfTest({
      delivery: { schedule: ['100ms'], allowNetworks: ['127.0.0.0/8'] },
      listen: { internal: { host: '127.0.0.1', port: 0, trustProxy: ['127.0.0.1'] } },
      ...(await sections()),
    })
    const token = await logIn(relay.internalUrl, ADMIN)
    const operate = async (method: string, path: string, body?: unknown) => {
      const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': '10.20.1.44', 'content-type': 'application/json' }
      const response = await fetchDocumented(`${relay.internalUrl}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      return { status: response.status, text: await response.text() }
    }
    return { ...relay, receiver, operate, trail: async () => await (await operatorOf(relay))('GET', '/relay/audit') }
  }

  test('every change by an app is recorded once, with its app and address, and without secrets', async () => {
    const { operate, trail, publicUrl, receiver } = await start()
    await push(publicUrl, 'not JSON')
    await push(publicUrl, pushBody({ trackingIds: ['5001'] }))
    const url = `${receiver.url}?token=${SECRET}`
    const added = await operate('POST', '/relay/endpoints', { name: 'shop', url, sharedKey: SECRET })
    const id: string = JSON.parse(added.text).id
    await push(publicUrl, pushBody({ trackingIds: ['5002'] }))
    await vi.waitFor(async () => expect((await operate('GET', `/relay/deliveries?endpoint=${id}&state=delivered`)).text).toMatch('5002'))
    const delivery: string = JSON.parse((await operate('GET', '/relay/deliveries')).text).deliveries[0].id
    const held: string = JSON.parse((await operate('GET', '/relay/inbox?state=quarantined')).text).pushes[0].id
    const orders: readonly (readonly [method: string, path: string, body?: unknown])[] = [
      ['PATCH', `/relay/endpoints/${id}`, { concurrency: 2, sharedKey: SECRET }],
      ['POST', `/relay/endpoints/${id}/rotate`],
      ['POST', `/relay/endpoints/${id}/retry`],
      ['POST', `/relay/endpoints/${id}/test`],
      ['POST', `/relay/deliveries/${delivery}/replay`, {}],
      ['POST', `/relay/endpoints/${id}/replay`, { since: 0, state: 'delivered', dryRun: true }],
      ['POST', `/relay/inbox/${held}/reprocess`],
      ['PUT', '/relay/parcels/AB1001/watch'],
      ['POST', '/relay/parcels/AB1001/refresh'],
      ['DELETE', '/relay/parcels/AB1001/watch'],
      ['DELETE', `/relay/endpoints/${id}`],
      // The relay refuses this request, so it is not recorded.
      ['DELETE', `/relay/endpoints/${id}`],
    ]
    for (const [method, path, body] of orders) await operate(method, path, body)
    const { text, body } = await trail()
    expect(text).not.toContain(SECRET)
    const actions = [body.actions].flat().reverse()
    expect(actions.map((one) => Reflect.get(Object(one), 'action'))).toEqual([
      'endpoint.added',
      'endpoint.changed',
      'endpoint.key_replaced',
      'endpoint.retried',
      'endpoint.tested',
      'delivery.replayed',
      'push.reprocessed',
      'parcel.watched',
      'parcel.refreshed',
      'parcel.unwatched',
      'endpoint.removed',
    ])
    expect(actions[1]).toEqual({
      id: expect.stringMatching(/^\d+$/),
      at: expect.stringMatching(/Z$/),
      by: { kind: 'app', name: ADMIN.username },
      address: '10.20.1.44',
      action: 'endpoint.changed',
      target: { kind: 'endpoint', id },
      detail: { endpoint: 'shop', change: { concurrency: 2 }, newKey: true },
    })
  })

  test('only admins read the audit trail, a page at a time, and nothing changes it', async () => {
    const { operate, trail, internalUrl } = await start()
    for (const identifier of ['AB1001', 'AB1002', 'AB1003']) await operate('PUT', `/relay/parcels/${identifier}/watch`)
    const first = JSON.parse((await operate('GET', '/relay/audit?limit=2')).text)
    const rest = JSON.parse((await operate('GET', `/relay/audit?limit=2&cursor=${first.next}`)).text)
    expect([...first.actions, ...rest.actions].map(({ target }) => target.id)).toEqual(['AB1003', 'AB1002', 'AB1001'])
    expect(rest.next).toBeNull()
    expect((await operate('GET', '/relay/audit?cursor=first')).status).toBe(400)
    expect((await ask(internalUrl, await logIn(internalUrl, SHOP), '/relay/audit')).status).toBe(403)
    for (const method of ['POST', 'PUT', 'DELETE']) expect((await operate(method, '/relay/audit')).status).toBe(405)
    expect([(await trail()).body.actions].flat()).toHaveLength(3)
  })
})
