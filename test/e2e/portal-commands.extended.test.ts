import { expect, test } from 'vitest'
import { linkCommands } from '../../src/console/portal/command-links.ts'
import { charactersOf, createAddresses, html } from '../../src/console/portal/html.ts'
import { pushBody } from '../support/history/builders.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { commandsOn, messagesInSource, WITHOUT_PAGE } from '../support/portal/commands-on.ts'
import { crawl } from '../support/portal/portal-pages.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { endpointOfTest } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'

test('no page of a relay in trouble shows a command or a request that another page does', async () => {
  await using receiver = await startWebhookReceiver()
  receiver.answer(() => 410)
  const relay = await relayOfTest({
    delivery: { allowNetworks: ['127.0.0.0/8'] },
    operator: { url: `${receiver.url}/operator`, format: 'ntfy' },
  })
  const id = await endpointOfTest(relay, { name: 'shop', url: receiver.url })
  await push(relay.publicUrl, pushBody({ trackingIds: ['10001001'] }))
  await push(relay.publicUrl, Buffer.from('{}'))
  await push(relay.publicUrl, '{"a":1}', { 'x-service-hmac-sha256': 'wrong' })
  const visitor = await loggedInAt(relay.internalUrl)
  await expect.poll(async () => (await visitor.get('/')).text).toContain('answered 410 Gone and is disabled')
  const pages = new Map(await crawl(visitor))
  for (const [path, fields] of [
    ['/check', {}],
    ['/reload', {}],
    ['/events/test', {}],
    ['/parcels', { identifiers: '' }],
    [`/webhooks/${id}/test`, {}],
    ['/deliveries/1/replay', { queued: '1' }],
    ['/backups', {}],
  ] as const)
    pages.set(`POST ${path}`, (await visitor.post(path, fields)).text)
  const bare = [...pages].flatMap(([path, page]) => commandsOn(page).map((command) => `${path}: ${command}`))
  expect(bare.filter((line) => !WITHOUT_PAGE.test(line.replace(/^.*?: /, '')))).toEqual([])
  expect([...pages.values()].join('')).toContain('>Reload the config</a>')
})

test('each link that takes the place of a command leads to a page that exists', async () => {
  const visitor = await loggedInAt((await relayOfTest()).internalUrl)
  const linked = messagesInSource().map((message) => charactersOf(linkCommands(html`${message}`, createAddresses(''), 'admin')))
  const links = new Set(
    linked.flatMap((message) => [...message.matchAll(/href="([^"]*)"/g)].map(([, to = '']) => to.replaceAll('&amp;', '&'))),
  )
  expect(links.size).toBeGreaterThan(10)
  for (const to of links) {
    const [path = '', part] = to.split('#')
    const { status, text } = await visitor.get(path)
    expect([to, status, part === undefined || text.includes(`id="${part}"`)]).toEqual([to, 200, true])
  }
})
