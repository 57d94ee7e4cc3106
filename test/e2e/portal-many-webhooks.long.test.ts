import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfFile } from '../support/relay/relay-of-file.ts'

const WEBHOOKS = 200
const ofFile = relayOfFile('http://127.0.0.1:9', { delivery: { allowNetworks: ['127.0.0.0/8'] } })

const countOf = (page: string, text: string) => page.split(text).length - 1

test('the overview explains the first of 200 failing webhooks and links to the others', async () => {
  const operator = await operatorOf(ofFile())
  for (let nth = 0; nth < WEBHOOKS; nth++)
    expect((await operator('POST', '/relay/endpoints', { name: `shop ${nth}`, url: 'http://127.0.0.1:9/' })).status).toBe(201)
  const visitor = await loggedInAt(ofFile().internalUrl)
  for (let nth = 0; nth < 5; nth++) expect((await push(ofFile().publicUrl, pushBody({ trackingIds: [`100${nth}`] }))).status).toBe(200)
  await expect.poll(async () => (await visitor.get('/webhooks')).text).toContain(`>${WEBHOOKS} are failing<`)
  const overview = (await visitor.get('/')).text
  expect(overview).toContain(`${WEBHOOKS} problems`)
  expect(countOf(overview, '<section class="problem')).toBe(20)
  expect(overview).toMatch(/180 more webhooks are in trouble.*href="\/webhooks"/s)
  expect(overview.length).toBeLessThan(100_000)
  const [first, second] = [(await visitor.get('/webhooks')).text, (await visitor.get('/webhooks?skip=100')).text]
  for (const page of [first, second]) {
    expect(countOf(page, '<strong>shop ')).toBe(100)
    expect(page.length).toBeLessThan(150_000)
  }
  expect(first).toContain('1 to 100 of 200')
})
