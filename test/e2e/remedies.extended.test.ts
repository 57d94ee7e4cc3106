import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { listenInTest } from '../support/network/listen.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { endpointOfTest } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay/relay-of-file.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { commandsOf } from '../support/relay/run-command.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'

const ofFile = relayOfFile(NO_CARRIER, { delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['1h'] } })
const own = idsOfTest()

/** Starts a receiver that gives this answer, and returns its address. */
async function answering(status: number): Promise<string> {
  const headers = status < 400 ? { location: 'https://shop.example/new' } : {}
  return `http://127.0.0.1:${await listenInTest(createServer((_request, response) => response.writeHead(status, headers).end('no')))}/hook`
}

async function nobody(): Promise<string> {
  await using receiver = await startWebhookReceiver()
  return receiver.url
}

test.each<[string, () => Promise<string>, string, string]>([
  ['302', () => answering(302), 'Name the final URL.', 'edit#url">Edit the URL'],
  ['404', () => answering(404), 'Is the path right?', 'edit#url">Edit the URL'],
  ['401', () => answering(401), 'Does it have the current key?', '#key">Compare its key'],
  ['503', () => answering(503), 'it can be reached, but fails inside.', ''],
  ['nobody', nobody, 'Does it run, and are its host and port right?', 'edit#url">Edit the URL'],
])('a failure says its remedy on each page that shows it: %s', async (name, open, remedy, link) => {
  const id = await endpointOfTest(ofFile(), { name: own(name), url: await open() })
  await push(ofFile().publicUrl, pushBody({ trackingIds: [own('1001')] }))
  const visitor = await loggedInAt(ofFile().internalUrl)
  const run = commandsOf(ofFile())
  const listed = async () => (await visitor.get(`/deliveries?endpoint=${id}&state=retrying`)).text
  await expect.poll(listed).toMatch(/\/deliveries\/\d+"/)
  const delivery = /\/deliveries\/(\d+)"/.exec(await listed())?.[1] ?? ''
  const pages = {
    delivery: (await visitor.get(`/deliveries/${delivery}`)).text,
    webhook: (await visitor.get(`/webhooks/${id}`)).text,
    tested: (await visitor.post(`/webhooks/${id}/test`)).text,
  }
  for (const [of, page] of Object.entries(pages)) expect(page, of).toContain(remedy)
  for (const [of, page] of Object.entries(pages))
    expect(page.includes(`/webhooks/${id}${link === '' ? '' : link.replace(/^e/, '/e')}`), of).toBe(true)
  expect((await run('deliveries', 'show', delivery)).stdout).toContain(remedy)
  expect((await run('endpoints', 'test', own(name))).stderr).toContain(remedy)
  expect(pages.delivery.includes('Location: https://shop.example/new')).toBe(name === '302')
})

test('a refused test event says its remedy in the portal and on the command line', async () => {
  const relay = await relayOfTest({ operator: { url: await answering(404), format: 'ntfy' } })
  const visitor = await loggedInAt(relay.internalUrl)
  const page = (await visitor.post('/events/test')).text
  expect(page).toContain('Is the path right? It is set by <code>operator.url</code>')
  expect(page).toContain('href="/reload">Reload the config')
  expect((await commandsOf(relay)('operator', 'test')).stderr).toContain('Its address is operator.url')
})
