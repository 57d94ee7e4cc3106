import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { crawl } from '../support/portal/portal-pages.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { endpointOfTest } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'

const BELOW = ['/audit', '/backups', '/check', '/events', '/jobs', '/retention', '/deliveries/replay', '/inbox/refusals', '/webhooks/new']
const ONE_OF_MANY = [/^\/parcels\/\w+$/, /^\/webhooks\/\d+$/, /^\/webhooks\/\d+\/edit$/, /^\/deliveries\/\d+$/, /^\/inbox\/\d+$/]

function linksIn(page: string, nav: RegExp): readonly string[] {
  return [...(nav.exec(page)?.[0] ?? '').matchAll(/ href="([^"]*)"/g)].map(([, to = '']) => to)
}

test('every page below a main page has crumbs that lead back to one', async () => {
  const receiver = await receiverOfTest()
  const relay = await relayOfTest({ delivery: { allowNetworks: ['127.0.0.0/8'] } })
  await endpointOfTest(relay, { name: 'shop', url: receiver.url })
  await push(relay.publicUrl, pushBody({ trackingIds: ['AB1001'] }))
  await push(relay.publicUrl, 'no JSON')
  await expect.poll(() => receiver.pushes.length).toBe(1)
  const visitor = await loggedInAt(relay.internalUrl)
  const pages = new Map(await crawl(visitor))
  const main = linksIn(pages.get('/') ?? '', /<ul id="side-links".*?<\/ul>/s)
  expect(main).toHaveLength(7)
  for (const path of [...BELOW, '/parcels/NOBODY1', '/settings/nothing']) pages.set(path, pages.get(path) ?? (await visitor.get(path)).text)
  // The answers to forms are pages too.
  for (const path of ['/check', '/watchdogs/try', '/events/test', '/deliveries/replay', '/webhooks/1/test'])
    pages.set(`POST ${path}`, (await visitor.post(path)).text)
  const paths = [...pages.keys()].map((path) => path.replace(/\?.*/, ''))
  for (const pattern of ONE_OF_MANY) expect([pattern, paths.some((path) => pattern.test(path))]).toEqual([pattern, true])
  const lost: string[] = []
  for (const [path, page] of pages) {
    const plain = path.replace(/\?.*/, '')
    if (main.includes(plain) || plain === '/login') continue
    const crumbs = linksIn(page, /<nav class="crumbs".*?<\/nav>/s)
    const isBack = main.includes(crumbs[0] ?? '') && crumbs.every((crumb) => pages.has(crumb) && crumb !== plain)
    if (!isBack) lost.push(`${path}: ${crumbs.join(' ')}`)
  }
  expect(lost).toEqual([])
})
