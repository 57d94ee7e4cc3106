import { beforeAll, expect, test } from 'vitest'
import { type createVisitor, loggedInAt } from '../../support/portal/portal-visitor.ts'
import { formIn } from '../../support/portal/sent-form.ts'
import { ADMIN, logIn, SHOP } from '../../support/relay/relay.ts'
import { relayOfFile } from '../../support/relay/relay-of-file.ts'
import { NO_CARRIER } from '../../support/runner/constants.ts'

const relay = relayOfFile(NO_CARRIER, { serve: { fetchUnknown: false } })
let visitor: ReturnType<typeof createVisitor>
let admin = ''
beforeAll(async () => {
  visitor = await loggedInAt(relay().internalUrl)
  admin = await logIn(relay().internalUrl, ADMIN)
})

async function say(identifier: string, order: unknown): Promise<void> {
  const headers = { authorization: `Bearer ${admin}`, 'content-type': 'application/json' }
  const init = { method: 'PUT', headers, body: JSON.stringify(order) }
  expect((await fetch(`${relay().internalUrl}/relay/parcels/${identifier}`, init)).ok).toBe(true)
}

/** The section "Order" of a page, without what stands before and after it. */
const sectionOf = (page: string) => /<section aria-labelledby="order">(.*?)<\/section>/s.exec(page)?.[1] ?? ''
const textOf = (markup: string) =>
  markup
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()

test('the page of a parcel shows the order before the history, to readers too', async () => {
  await say('PG1001', { reference: 'ORDER-1207', labels: { shop: 'north', priority: 'high' }, note: 'A gift' })
  const { text } = await visitor.get('/parcels/PG1001')
  expect(textOf(sectionOf(text))).toContain('Order Reference ORDER-1207 all its parcels Labels priority high shop north Note A gift')
  expect(text.indexOf('id="order"')).toBeLessThan(text.indexOf('Views of this parcel'))
  const reader = await loggedInAt(relay().internalUrl, SHOP)
  expect(textOf(sectionOf((await reader.get('/parcels/PG1001')).text))).toContain('ORDER-1207')
})

test('a parcel without an order says so', async () => {
  await say('PG1002', {})
  expect(textOf(sectionOf((await visitor.get('/parcels/PG1002')).text))).toContain('Nobody has said to which order it belongs.')
})

const formPath = (identifier: string) => `/parcels/${identifier}/order`

async function orderOf(identifier: string): Promise<unknown> {
  const headers = { authorization: `Bearer ${admin}` }
  return Object(await (await fetch(`${relay().internalUrl}/relay/parcels/${identifier}`, { headers })).json()).order
}

test('the form replaces the order once, and shows what it saved; sent as it is, it changes nothing', async () => {
  await say('PG2001', { reference: 'OLD-1', labels: { gone: 'soon' } })
  const ids = formIn((await visitor.get('/parcels/PG2001')).text, formPath('PG2001'))
  const typed = { reference: ' ORDER-2001 ', labels: 'shop=north\r\n\r\nurl = https://example.com/?a=b\r\n', note: 'first\r\nsecond' }
  for (let times = 0; times < 2; times++) {
    const sent = await visitor.post(formPath('PG2001'), { ...ids, ...typed })
    expect([sent.status, sent.headers.get('location')]).toEqual([303, '/parcels/PG2001'])
  }
  const saved = { reference: 'ORDER-2001', labels: { shop: 'north', url: 'https://example.com/?a=b' }, note: 'first\nsecond' }
  expect(await orderOf('PG2001')).toEqual(saved)
  const { text } = await visitor.get('/parcels/PG2001')
  expect(text).toContain('>shop=north\nurl=https://example.com/?a=b</textarea>')
  const again = {
    ...formIn(text, formPath('PG2001')),
    reference: 'ORDER-2001',
    labels: 'shop=north\r\nurl=https://example.com/?a=b',
    note: 'first\r\nsecond',
  }
  expect((await visitor.post(formPath('PG2001'), again)).status).toBe(303)
  const asked = { headers: { authorization: `Bearer ${admin}` } }
  const audit: unknown = await (await fetch(`${relay().internalUrl}/relay/audit?target=parcel:PG2001`, asked)).json()
  expect(audit).toMatchObject({ actions: [{ detail: { changed: false } }, { detail: { changed: true } }, { detail: { changed: true } }] })
})

test('two people: a form takes back nothing that others have changed, and is refused if they have changed the same', async () => {
  await say('PG2005', { reference: 'OLD-5', labels: { shop: 'north' }, note: 'x' })
  const opened = async () => {
    const page = (await (await loggedInAt(relay().internalUrl)).get('/parcels/PG2005')).text
    return { ...formIn(page, formPath('PG2005')), reference: 'OLD-5', labels: 'shop=north', note: 'x' }
  }
  const [ann, bo, cy] = [await opened(), await opened(), await opened()]
  const send = async (form: Readonly<Record<string, string>>, typed: Readonly<Record<string, string>>) => {
    const sent = await visitor.post(formPath('PG2005'), { ...form, ...typed })
    return [sent.status, sent.text.includes('Somebody else has changed the same of this order')]
  }
  expect(await send(ann, { reference: 'ANN-5', labels: 'shop=north\r\npriority=high' })).toEqual([303, false])
  expect(await send(bo, { note: 'of Bo' })).toEqual([303, false])
  const both = { reference: 'ANN-5', labels: { shop: 'north', priority: 'high' }, note: 'of Bo' }
  expect(await orderOf('PG2005')).toEqual(both)
  expect(await send(cy, { reference: 'CY-5', note: '' })).toEqual([409, true])
  expect(await orderOf('PG2005')).toEqual(both)
  // What both have typed alike is no conflict.
  const dee = await opened()
  await say('PG2005', { ...both, note: 'as typed by Dee' })
  expect(await send(dee, { reference: 'ANN-5', labels: 'priority=high\nshop=north', note: 'as typed by Dee' })).toEqual([303, false])
  expect((await send({ ...(await opened()), shown: '{' }, {}))[0]).toBe(400)
})

test('all fields empty: nothing is said of the order any more', async () => {
  await say('PG2002', { reference: 'OLD-2', labels: { gone: 'soon' }, note: 'x' })
  await visitor.post(formPath('PG2002'), { reference: '', labels: ' ', note: '' })
  expect(await orderOf('PG2002')).toEqual({ reference: null, labels: {}, note: null })
})

test.each([
  [{ labels: 'shop north' }, 'Write each label as name=value: line 1 has no “=”.'],
  [{ labels: 'a=1\na=2' }, 'Line 2 names a label that another line has named.'],
  [{ labels: 'Shop=1' }, 'Line 1: a label is named by 1 to 32 of the characters a-z, 0-9 and -.'],
  [{ labels: '__proto__=1' }, 'Line 1: a label is named by'],
  [{ labels: Array.from({ length: 17 }, (_, nth) => `l${nth}=x`).join('\n') }, 'labels must hold at most 16 labels.'],
  [{ reference: 'x'.repeat(101) }, 'reference must have at most 100 characters.'],
  [{ note: 'x'.repeat(1001) }, 'note must have at most 1000 characters.'],
  [{ note: 'bell \u0007' }, 'note must not hold control characters or half characters.'],
])('what is wrong in %o is said beside its field, and what was typed stays', async (wrong, sentence) => {
  await say('PG2003', { reference: 'KEPT-1' })
  const answer = await visitor.post(formPath('PG2003'), { reference: 'TYPED-1', labels: '', note: '', ...wrong })
  expect(answer.status).toBe(400)
  expect(answer.text.split('class="err"')[1]).toContain(sentence)
  expect(answer.text).toMatch(/<details class="plain" open><summary>Change its order/)
  for (const typed of Object.values(wrong)) expect(answer.text).toContain(typed)
  expect(await orderOf('PG2003')).toMatchObject({ reference: 'KEPT-1' })
})

test('a reader sees no form, and may not send it; an erased parcel gets no order', async () => {
  await say('PG2004', { reference: 'KEPT-2' })
  const reader = await loggedInAt(relay().internalUrl, SHOP)
  expect((await reader.get('/parcels/PG2004')).text).not.toContain(formPath('PG2004'))
  expect((await reader.post(formPath('PG2004'), { reference: 'X' })).status).toBe(403)
  const headers = { authorization: `Bearer ${admin}` }
  await fetch(`${relay().internalUrl}/relay/parcels/PG2004`, { method: 'DELETE', headers })
  expect((await visitor.post(formPath('PG2004'), { reference: 'X', labels: '', note: '' })).status).toBe(404)
})

test('the search field finds an order: its only parcel, or the list of its parcels', async () => {
  await say('PG3001', { reference: 'Order 77/Ä' })
  const find = (text: string) => visitor.get(`/parcels?query=${encodeURIComponent(text)}`)
  const [one, none] = [await find(' Order 77/Ä'), await find('Order 77/B')]
  expect([one.status, one.headers.get('location')]).toEqual([303, '/parcels/PG3001'])
  expect(none.text).toContain('No parcel is known by Order 77/B, and no order.')
  await say('PG3002', { reference: 'Order 77/Ä' })
  const several = await find('Order 77/Ä')
  const location = several.headers.get('location') ?? ''
  expect(new URL(location, 'http://x').searchParams.get('reference')).toBe('Order 77/Ä')
  const list = (await visitor.get(location)).text
  expect(list).toContain('2 parcels of the order Order 77/Ä, the ones known longest first.')
  expect(list).toMatch(/PG3001[\s\S]*PG3002/)
  expect(list).toContain('>Order</th>')
  const filtered = (await visitor.get(`${location}&status=Created`)).text
  expect(filtered).toContain('No parcel of the order Order 77/Ä matches the filters.')
})

test('a text that begins identifiers and is an order lists these, and leads to the order', async () => {
  for (const id of ['PG4001', 'PG4002', 'XX4001']) await say(id, { reference: id === 'XX4001' ? 'PG40' : 'OTHER' })
  const { text } = await visitor.get('/parcels?query=PG40')
  expect(text).toContain('2 parcels with an identifier that begins with PG40')
  expect(text).toContain('<a href="/parcels/XX4001">The parcels of the order PG40</a>')
})
