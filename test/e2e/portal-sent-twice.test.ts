import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { crawl } from '../support/portal/portal-pages.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { formIn, keyIn } from '../support/portal/sent-form.ts'
import { endpointOfTest, operatorOf } from '../support/relay/manage.ts'
import { push, SHOP } from '../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay/relay-of-file.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'

const ofFile = relayOfFile(NO_CARRIER, { delivery: { allowNetworks: ['127.0.0.0/8'] } })
const own = idsOfTest()

const rowIn = (page: string, name: string) => new RegExp(`<dt>${name}</dt><dd>([^<]*)`).exec(page)?.[1]

const loggedIn = () => loggedInAt(ofFile().internalUrl)
const addWebhook = (url = 'http://127.0.0.1:9/hook') => endpointOfTest(ofFile(), { name: own('till'), url })

/** Counts how often the key of a webhook was replaced, by the audit trail. */
async function replacedKeys(id: string): Promise<number> {
  const { actions } = (await (await operatorOf(ofFile()))('GET', '/relay/audit?limit=100')).body as {
    readonly actions: readonly { readonly action: string; readonly target: { readonly id: string } | null }[]
  }
  return actions.filter(({ action, target }) => action === 'endpoint.key_replaced' && target?.id === id).length
}

test('W4: a webhook that is added by two presses shows its key in both answers', async () => {
  const visitor = await loggedIn()
  const fields = {
    ...formIn((await visitor.get('/webhooks/new')).text, '/webhooks/new'),
    url: 'http://127.0.0.1:9/hook',
    name: own('till'),
    events: 'entry',
  }
  const presses = await Promise.all([visitor.post('/webhooks/new', fields), visitor.post('/webhooks/new', fields)])
  const later = await visitor.post('/webhooks/new', fields)
  expect([...presses, later].map(({ status }) => status)).toEqual([201, 201, 201])
  const [key, ...others] = [...presses, later].map(({ text }) => keyIn(text))
  expect(key).toMatch(/^[\w+/=]{40,}$/)
  expect(others).toEqual([key, key])
  const id = /\/webhooks\/(\d+)\/test"/.exec(later.text)?.[1] ?? ''
  await (await operatorOf(ofFile()))('DELETE', `/relay/endpoints/${id}`)
})

test('W4: a key that is replaced by two presses is replaced once, and both answers show it', async () => {
  const id = await addWebhook()
  const visitor = await loggedIn()
  const fields = formIn((await visitor.get(`/webhooks/${id}`)).text, `/webhooks/${id}/key`)
  const first = await visitor.post(`/webhooks/${id}/key`, fields)
  const again = await visitor.post(`/webhooks/${id}/key`, fields)
  expect([first.status, again.status]).toEqual([200, 200])
  expect(keyIn(again.text)).toBe(keyIn(first.text))
  expect(await replacedKeys(id)).toBe(1)

  await (await operatorOf(ofFile()))('POST', `/relay/endpoints/${id}/rotate`, { at: 'now', sharedKey: null })
  const late = await visitor.post(`/webhooks/${id}/key`, fields)
  expect([late.status, late.text.includes('The key of this form cannot be shown again'), keyIn(late.text)]).toEqual([200, true, null])
})

test('W4: a sent form is refused with other entries, at another address and from others', async () => {
  const id = await addWebhook()
  const visitor = await loggedIn()
  const page = (await visitor.get(`/webhooks/${id}`)).text
  const fields = formIn(page, `/webhooks/${id}/key`)
  expect((await visitor.post(`/webhooks/${id}/key`, fields)).status).toBe(200)
  const other = await visitor.post(`/webhooks/${id}/key`, { ...fields, at: 'now' })
  expect([other.status, other.text.includes('with other entries')]).toEqual([409, true])
  expect((await visitor.post(`/webhooks/${id}/disable`, { form: fields.form ?? '' })).status).toBe(409)
  const shop = await loggedInAt(ofFile().internalUrl, SHOP)
  expect((await shop.post(`/webhooks/${id}/key`, fields)).status).toBe(403)
  expect((await visitor.post(`/webhooks/${id}/key`, { ...fields, form: 'a.b.c' })).status).toBe(409)
})

test('a test that is sent by two presses is sent once, and both answers show its result', async () => {
  await using receiver = await startWebhookReceiver()
  receiver.answer(() => ({ status: 418, body: 'a teapot' }))
  const id = await addWebhook(receiver.url)
  const visitor = await loggedIn()
  const fields = formIn((await visitor.get(`/webhooks/${id}`)).text, `/webhooks/${id}/test`)
  for (const { status, text } of [await visitor.post(`/webhooks/${id}/test`, fields), await visitor.post(`/webhooks/${id}/test`, fields)])
    expect([status, /The test was refused:<\/strong> 418 after \d+ ms, <span class="answer">a teapot</.test(text)]).toEqual([200, true])
  expect(receiver.pushes).toHaveLength(1)
})

test('a webhook that is removed and a parcel that is erased by two presses show no error', async () => {
  const visitor = await loggedIn()
  const id = await addWebhook()
  const removal = { ...formIn((await visitor.get(`/webhooks/${id}`)).text, `/webhooks/${id}/remove`), confirm: own('till') }
  for (let press = 0; press < 2; press++)
    expect((await visitor.post(`/webhooks/${id}/remove`, removal)).headers.get('location')).toBe('/webhooks')

  const parcel = own('1001')
  await push(ofFile().publicUrl, pushBody({ trackingIds: [parcel] }))
  const erasure = { ...formIn((await visitor.get(`/parcels/${parcel}`)).text, `/parcels/${parcel}/erase`), confirm: parcel }
  const presses = [await visitor.post(`/parcels/${parcel}/erase`, erasure), await visitor.post(`/parcels/${parcel}/erase`, erasure)]
  for (const { status, text } of presses) {
    expect([status, text.includes('The parcel is erased')]).toEqual([200, true])
    // Both show what the order has removed.
    for (const row of ['Parcels', 'Identifiers', 'Pushes', 'Entries reported']) expect([row, rowIn(text, row)]).toEqual([row, '1'])
  }
  expect(rowIn(presses[1]?.text ?? '', 'Unrecorded pushes and other records that named it')).toBe('counted when the form was sent first')
})

test('an erasure clears what is kept of sent forms, which still do nothing twice', async () => {
  const visitor = await loggedIn()
  const id = await addWebhook()
  const fields = formIn((await visitor.get(`/webhooks/${id}`)).text, `/webhooks/${id}/key`)
  await visitor.post(`/webhooks/${id}/key`, fields)
  const parcel = own('1002')
  await push(ofFile().publicUrl, pushBody({ trackingIds: [parcel] }))
  expect((await (await operatorOf(ofFile()))('DELETE', `/relay/parcels/${parcel}`)).status).toBe(200)
  const late = await visitor.post(`/webhooks/${id}/key`, fields)
  expect([late.status, keyIn(late.text)]).toEqual([200, null])
  expect(await replacedKeys(id)).toBe(1)
})

test('W4: the key of tokens is replaced once by two presses, and both answers say that it was', async () => {
  const visitor = await loggedIn()
  const fields = formIn((await visitor.get('/settings')).text, '/settings/rotate-tokens')
  const first = await visitor.post('/settings/rotate-tokens', fields)
  const again = await visitor.post('/settings/rotate-tokens', fields)
  expect([first.status, again.status]).toEqual([200, 200])
  expect(first.text).toMatch(/The key of tokens is replaced\.<\/strong> Tokens and sessions that the former one has signed are valid until/)
  expect(again.text).toContain('The form was sent again, and nothing was done twice.')
})

test('every form that changes something has an id of its own on every page', async () => {
  await addWebhook()
  await push(ofFile().publicUrl, pushBody({ trackingIds: [own('1003')] }))
  const forms = [...(await crawl(await loggedIn()))].flatMap(([path, page]) =>
    path === '/login' ? [] : [...page.matchAll(/<form[^>]* method="post"[^>]*>(?:<input type="hidden" name="form" value="([^"]+)">)?/g)],
  )
  expect(forms.length).toBeGreaterThan(20)
  const ids = forms.map(([, id]) => id)
  expect([ids.includes(undefined), new Set(ids).size]).toEqual([false, ids.length])
})
