import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { endpointOfTest } from '../support/relay/manage.ts'
import { push, SHOP } from '../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay/relay-of-file.ts'

const ofFile = relayOfFile('http://127.0.0.1:9', { delivery: { allowNetworks: ['127.0.0.0/8'] } })
const own = idsOfTest()

const loggedIn = () => loggedInAt(ofFile().internalUrl)

const addWebhook = (name: string, url: string) => endpointOfTest(ofFile(), { name, url })

const pushEvent = async (fields: Parameters<typeof pushBody>[0]) =>
  expect((await push(ofFile().publicUrl, pushBody(fields))).status).toBe(200)

/** Returns the ids of the deliveries on a page, newest first. */
const rowsOf = (page: string) =>
  [...page.matchAll(/<th scope="row" role="rowheader"><a href="\/deliveries\/(\d+)">/g)].map(([, id]) => id ?? '')

const hiddenFields = (page: string, button: string) => {
  const form = page.split('<form ').find((one) => one.includes(`>${button}<`)) ?? expect.fail(`no button ${button}`)
  return Object.fromEntries(
    [...form.matchAll(/type="hidden" name="([^"]*)" value="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]),
  )
}

test('deliveries are listed by webhook, parcel, state and time', async () => {
  await using receiver = await startWebhookReceiver()
  const [first, second] = [await addWebhook(own('first'), receiver.url), await addWebhook(own('second'), receiver.url)]
  const [one, other] = [own('1001'), own('1002')]
  for (const id of [one, other]) await pushEvent({ trackingIds: [id] })
  await expect.poll(() => receiver.pushes.length).toBe(4)
  const visitor = await loggedIn()
  const count = async (query: string) => rowsOf((await visitor.get(`/deliveries?${query}`)).text).length
  await expect.poll(() => count(`endpoint=${first}&state=delivered`)).toBe(2)
  expect(await count(`endpoint=${second}&parcel=${one}`)).toBe(1)
  expect(await count(`endpoint=${first}&state=dead`)).toBe(0)
  expect(await count(`endpoint=${first}&to=2020-01-01T00:00`)).toBe(0)
  expect(await count(`endpoint=${first}&from=2020-01-01T00:00`)).toBe(2)
})

test.each([
  ['from=yesterday', 'From must be a time such as 2026-03-01T10:00.'],
  ['from=2026-03-02T10:00&to=2026-03-01T10:00', 'to must be later than from.'],
  ['parcel=NOBODYKNOWS1', 'No parcel has this identifier.'],
  ['parcel=%3Cb%3E', 'identifier'],
])('a mistake in a filter is explained next to the filter: %s', async (query, said) => {
  const answer = await (await loggedIn()).get(`/deliveries?${query}`)
  expect([answer.status, answer.text.includes(said), answer.text.includes('Show all deliveries')]).toEqual([400, true, true])
})

test('a list continues on the next page', async () => {
  await using receiver = await startWebhookReceiver()
  const id = await addWebhook(own('busy'), receiver.url)
  for (let nth = 0; nth < 101; nth++) await pushEvent({ trackingIds: [own(`${2000 + nth}`)] })
  const visitor = await loggedIn()
  const page = (await visitor.get(`/deliveries?endpoint=${id}`)).text
  const older = /href="(\/deliveries\?[^"]*cursor=[^"]*)">Older/.exec(page)?.[1]?.replaceAll('&amp;', '&') ?? ''
  const rest = (await visitor.get(older)).text
  expect([rowsOf(page).length, rowsOf(rest).length, rest.includes('>Older<')]).toEqual([100, 1, false])
  expect((await visitor.get('/deliveries?cursor=x')).status).toBe(404)
})

test('a delivery shows what was sent and each answer, and no key', async () => {
  await using receiver = await startWebhookReceiver()
  receiver.answer(() => ({ status: 422, body: 'unknown kind "Doorstep"' }))
  const id = await addWebhook(own('picky'), receiver.url)
  await pushEvent({ trackingIds: [own('1001')], status: 'TerminalArrived', location: 'Västerås' })
  const visitor = await loggedIn()
  const pageOf = async () => {
    const [delivery = ''] = rowsOf((await visitor.get(`/deliveries?endpoint=${id}`)).text)
    return (await visitor.get(`/deliveries/${delivery}`)).text
  }
  await expect.poll(pageOf).toContain('unknown kind &quot;Doorstep&quot;')
  const page = await pageOf()
  expect(page).toContain(`<h1>TerminalArrived to ${own('picky')}</h1>`)
  for (const shown of ['webhook-id: ', 'relay-sequence: ', 'Västerås', '(computed for each attempt)']) expect(page).toContain(shown)
  const signature = receiver.pushes[0]?.headers['x-service-hmac-sha256'] ?? expect.fail('it was not signed')
  expect(page).not.toContain(signature)
})

test('a form that sends a delivery again sends it once, and one from an older page is refused', async () => {
  await using receiver = await startWebhookReceiver()
  const id = await addWebhook(own('again'), receiver.url)
  await pushEvent({ trackingIds: [own('1001')] })
  const visitor = await loggedIn()
  await expect.poll(async () => rowsOf((await visitor.get(`/deliveries?endpoint=${id}&state=delivered`)).text)).toHaveLength(1)
  const [delivery = ''] = rowsOf((await visitor.get(`/deliveries?endpoint=${id}`)).text)
  const fields = hiddenFields((await visitor.get(`/deliveries/${delivery}`)).text, 'Send again')
  expect((await visitor.post(`/deliveries/${delivery}/replay`, fields)).headers.get('location')).toBe(`/deliveries/${delivery}`)
  await expect.poll(() => receiver.pushes.length).toBe(2)
  expect((await visitor.post(`/deliveries/${delivery}/replay`, fields)).headers.get('location')).toBe(`/deliveries/${delivery}`)
  expect((await visitor.post(`/deliveries/${delivery}/replay`, { ...fields, form: '' })).status).toBe(409)
  expect(receiver.pushes).toHaveLength(2)
})

test.each(['itself', 'another webhook'])('a replay to %s that is submitted twice is made once', async (target) => {
  await using receiver = await startWebhookReceiver()
  await using elsewhere = await startWebhookReceiver()
  const of = await addWebhook(own('source'), receiver.url)
  for (const id of ['1001', '1002']) await pushEvent({ trackingIds: [own(id)] })
  const visitor = await loggedIn()
  await expect.poll(async () => rowsOf((await visitor.get(`/deliveries?endpoint=${of}&state=delivered`)).text)).toHaveLength(2)
  const isOther = target !== 'itself'
  const to = isOther ? await addWebhook(own('target'), elsewhere.url) : of
  const counted = await visitor.post('/deliveries/replay', { of, to, state: 'delivered', since: '', do: 'count' })
  expect(counted.text).toContain('2 deliveries of 2 parcels')
  const button = `Replay 2 deliveries to ${own(isOther ? 'target' : 'source')}`
  const fields = hiddenFields(counted.text, button)
  expect((await visitor.post('/deliveries/replay', fields)).text).toContain('2 deliveries are queued again')
  await expect.poll(async () => rowsOf((await visitor.get(`/deliveries?endpoint=${to}&state=delivered`)).text)).toHaveLength(2)
  expect((await visitor.post('/deliveries/replay', fields)).text).toContain('nothing was done twice')
  expect((await visitor.post('/deliveries/replay', { ...fields, form: '' })).text).toContain('Nothing was replayed.')
  expect(isOther ? [receiver.pushes.length, elsewhere.pushes.length] : [receiver.pushes.length, 0]).toEqual(isOther ? [2, 2] : [4, 0])
})

test('a replay without a webhook or with a wrong time is refused next to its form', async () => {
  await using receiver = await startWebhookReceiver()
  const of = await addWebhook(own('hook'), receiver.url)
  const visitor = await loggedIn()
  for (const wrong of [{ since: 'soon' }, { to: '999999' }, { to: '' }, { of: '<b>' }, { state: 'lost' }]) {
    const answer = await visitor.post('/deliveries/replay', { of, to: of, state: '', since: '', do: 'count', ...wrong })
    expect([answer.status, answer.text.includes('Nothing was replayed.')]).toEqual([400, true])
  }
})

test('a waiting delivery can be skipped, and its page then says so', async () => {
  await using receiver = await startWebhookReceiver()
  receiver.answer(() => 503)
  const id = await addWebhook(own('broken'), receiver.url)
  await pushEvent({ trackingIds: [own('1001')], status: 'TerminalArrived' })
  const visitor = await loggedIn()
  await expect.poll(async () => rowsOf((await visitor.get(`/deliveries?endpoint=${id}&state=retrying`)).text)).toHaveLength(1)
  const [delivery = ''] = rowsOf((await visitor.get(`/deliveries?endpoint=${id}`)).text)
  expect((await visitor.get(`/deliveries/${delivery}`)).text).toContain('>Send now<')
  expect((await visitor.post(`/deliveries/${delivery}/skip`)).headers.get('location')).toBe(`/deliveries/${delivery}`)
  expect((await visitor.get(`/deliveries/${delivery}`)).text).toContain('Somebody skipped it.')
})

test('a push in quarantine is explained, shown as text and downloaded byte for byte', async () => {
  const bytes = Buffer.concat([Buffer.from(`{"status":"<b>${own('q')}</b>","location":"Malm`), Buffer.from([0xf6]), Buffer.from('"}')])
  expect((await push(ofFile().publicUrl, bytes)).status).toBe(200)
  const visitor = await loggedIn()
  const list = (await visitor.get('/inbox')).text
  expect(list).toContain('it is not UTF-8')
  const id = /<th scope="row" role="rowheader"><a href="\/inbox\/(\d+)">/.exec(list)?.[1] ?? ''
  const page = (await visitor.get(`/inbox/${id}`)).text
  for (const shown of [`<h1>Push ${id}</h1>`, `&lt;b&gt;${own('q')}&lt;/b&gt;`, 'Malm<mark>�</mark>', 'It is not UTF-8'])
    expect(page).toContain(shown)
  const headers = { cookie: [...visitor.jar].map(([name, value]) => `${name}=${value}`).join('; ') }
  const file = await fetch(`${ofFile().internalUrl}/inbox/${id}/body`, { headers })
  expect(Buffer.from(await file.arrayBuffer())).toEqual(bytes)
  expect(['content-type', 'content-disposition', 'x-content-type-options'].map((name) => file.headers.get(name))).toEqual([
    'application/octet-stream',
    `attachment; filename="push-${id}.bin"`,
    'nosniff',
  ])
  const again = await visitor.post(`/inbox/${id}/reprocess`)
  expect([again.status, again.text.includes('It is still not understood.')]).toEqual([200, true])
})

test('a push is shown raw or indented, with its names and numbers unchanged', async () => {
  await pushEvent({ trackingIds: [own('1001')], location: own('Here {"a": [1,2]}, there') })
  const visitor = await loggedIn()
  const list = (await visitor.get('/inbox?state=recorded')).text
  const id = /<a href="\/inbox\/(\d+)">/.exec(list)?.[1] ?? ''
  const plain = (await visitor.get(`/inbox/${id}`)).text
  const indented = (await visitor.get(`/inbox/${id}?as=indented`)).text
  expect(plain).toContain('{&quot;status&quot;:&quot;TerminalArrived&quot;,')
  expect(indented).toContain('{\n  &quot;status&quot;: &quot;TerminalArrived&quot;,\n')
  expect(indented).toContain(own('Here {\\&quot;a\\&quot;: [1,2]}, there'))
  expect(indented).not.toContain('>Reprocess<')
  const refused = await visitor.post(`/inbox/${id}/reprocess`)
  expect([refused.status, refused.text.includes('This push is recorded already.')]).toEqual([409, true])
})

test('an app with only the scope status neither sees nor changes deliveries or the inbox', async () => {
  const visitor = await loggedInAt(ofFile().internalUrl, SHOP)
  for (const path of ['/deliveries', '/deliveries/1', '/inbox', '/inbox/1', '/inbox/1/body'])
    expect((await visitor.get(path)).status).toBe(403)
  for (const path of ['/deliveries/replay', '/deliveries/1/replay', '/deliveries/1/retry', '/deliveries/1/skip', '/inbox/1/reprocess'])
    expect((await visitor.post(path)).status).toBe(403)
  expect((await visitor.get('/parcels')).text).not.toContain('href="/inbox"')
})
