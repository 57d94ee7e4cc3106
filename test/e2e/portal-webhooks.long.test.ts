import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { endpointOfTest, operatorOf } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay/relay-of-file.ts'

const ofFile = relayOfFile('http://127.0.0.1:9', { delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['1h'] } })
const own = idsOfTest()

const loggedIn = () => loggedInAt(ofFile().internalUrl)

const addWebhook = (name: string, url: string) => endpointOfTest(ofFile(), { name, url })

const mainOf = (page: string) => page.split('<main')[1] ?? ''

/** Adds a webhook that fails for each of five parcels, and waits until its page says so. */
async function failingWebhook(visitor: Awaited<ReturnType<typeof loggedIn>>, url: string) {
  const id = await addWebhook(own('till'), url)
  for (const nth of [1, 2, 3, 4, 5]) await push(ofFile().publicUrl, pushBody({ trackingIds: [own(`200${nth}`)] }))
  await expect.poll(async () => (await visitor.get(`/webhooks/${id}`)).text).toContain(`<title>${own('till, failing')}`)
  return id
}

test('a failing webhook is explained in one sentence, and its waiting events are counted', async () => {
  await using receiver = await startWebhookReceiver()
  receiver.answer(() => ({ status: 503, body: '<i>tills</i> are closed' }))
  const visitor = await loggedIn()
  const id = await failingWebhook(visitor, receiver.url)
  const { text } = await visitor.get(`/webhooks/${id}`)
  const sentence = 'It answers 503 <q class="said">&lt;i&gt;tills&lt;/i&gt; are closed</q>: it can be reached, but fails inside.'
  expect(text).toContain(sentence)
  expect(text).toMatch(/Next probe<\/dt><dd>(now|<time [^>]*>in \d+ s<\/time>)/)
  expect(text).toMatch(/5 events wait, the oldest since .*None is lost/)
  expect(text).toMatch(/aria-label="Failed attempts by answer".*<td [^>]*>[5-9]<.*tills.*Delivery \d+/s)
  expect(text).toContain(`Remove ${own('till')} and cancel 5 events</button>`)
  const overview = await visitor.get('/')
  expect(overview.text).toContain(sentence)
  expect(overview.text).toContain(`href="/deliveries?endpoint=${id}" class="btn">Its deliveries</a>`)
  expect((await visitor.get('/parcels')).text).toMatch(/>Webhooks<\/a><span class="mark bad">1 failing<\/span>/)

  receiver.answer(() => 200)
  expect((await visitor.post(`/webhooks/${id}/retry`)).headers.get('location')).toBe(`/webhooks/${id}`)
  await expect.poll(async () => (await visitor.get(`/webhooks/${id}`)).text).toContain('It is sent each new event. Nothing waits.')
  expect((await visitor.get('/parcels')).text).not.toContain('class="mark bad"')
})

test('the page of a failing webhook says that nothing listens at its address', async () => {
  const visitor = await loggedIn()
  const id = await failingWebhook(visitor, 'http://127.0.0.1:9/hook')
  expect((await visitor.get(`/webhooks/${id}`)).text).toContain('No answer: nothing listens at 127.0.0.1:9, or there is no route to it.')
})

test('the page of a disabled webhook shows who disabled it, since when, and its key’s age', async () => {
  const visitor = await loggedIn()
  const id = await addWebhook(own('till'), 'http://127.0.0.1:9/hook')
  await visitor.post(`/webhooks/${id}/disable`)
  const { text } = await visitor.get(`/webhooks/${id}`)
  expect(text).toMatch(/disabled <small>by admin, since <time/)
  expect(text).toMatch(/In use since <time.*less than a second|In use since <time.*\d+ s\. It cannot be shown/)
})

test('a long list of webhooks has search fields, and lists failing webhooks first', async () => {
  const operator = await operatorOf(ofFile())
  const visitor = await loggedIn()
  expect((await visitor.get('/webhooks')).text).not.toContain('Name or URL has')
  for (let nth = 0; nth < 101; nth++) await addWebhook(own(`shop${String(nth).padStart(3, '0')}`), `http://127.0.0.1:9/${nth}`)
  const last = await addWebhook(own('zeta'), 'http://127.0.0.1:9/zeta')
  await operator('PATCH', `/relay/endpoints/${last}`, { enabled: false })
  const first = mainOf((await visitor.get('/webhooks')).text)
  expect(first).toContain('>Name or URL has</label>')
  expect(first.indexOf(own('zeta'))).toBeLessThan(first.indexOf(own('shop000')))
  expect(first).toContain('1 to 100 of 102')
  const more = mainOf((await visitor.get('/webhooks?skip=100')).text)
  expect([more.includes(own('shop100')), more.includes(own('shop000'))]).toEqual([true, false])
  const found = mainOf((await visitor.get(`/webhooks?query=SHOP05&state=untried`)).text)
  expect(found.match(/<strong>/g)).toHaveLength(10)
  expect((await visitor.get('/webhooks?query=nowhere')).text).toContain('No webhook matches the search')
})
