import { createServer } from 'node:http'
import type { BrowserContextOptions } from 'playwright-core'
import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { listenInTest } from '../support/network/listen.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { browserOfFile } from '../support/portal/browser.ts'
import { openLoggedIn } from '../support/portal/portal-page.ts'
import { endpointOfTest } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay/relay-of-file.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'

const ofFile = relayOfFile(NO_CARRIER, { delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['1h'] } })
const openPage = browserOfFile()
const own = idsOfTest()

const logIn = (options: BrowserContextOptions = {}) => openLoggedIn(openPage, ofFile().internalUrl, options)

test('a new key stays on its page while a test is sent, whose result is in a new tab', async () => {
  await using receiver = await startWebhookReceiver()
  const page = await logIn()
  await page.goto('/webhooks/new')
  await page.getByLabel('URL', { exact: true }).fill(receiver.url)
  await page.getByLabel('Name', { exact: true }).fill(own('shop'))
  await page.getByRole('button', { name: 'Add webhook' }).click()
  const key = await page.locator('#key').textContent()
  const [result] = await Promise.all([page.waitForEvent('popup'), page.getByRole('button', { name: 'Send test' }).click()])
  expect(await result.getByRole('status').first().textContent()).toContain('The test was accepted')
  expect(key).toHaveLength(44)
  expect(await page.locator('#key').textContent()).toBe(key)
})

test('on a narrow screen the buttons of a problem come before its explanation', async () => {
  await using receiver = await startWebhookReceiver()
  receiver.answer(() => 410)
  const name = own('shop')
  await endpointOfTest(ofFile(), { name, url: receiver.url })
  await push(ofFile().publicUrl, pushBody({ trackingIds: [own('1001')] }))
  const page = await logIn({ viewport: { width: 390, height: 844 } })
  const problem = page.locator('.problem').filter({ hasText: name })
  const topOf = async (part: string) => (await problem.locator(part).first().boundingBox()) ?? expect.fail(`no ${part}`)
  await expect
    .poll(async () => {
      await page.goto('/')
      return await problem.count()
    })
    .toBe(1)
  const [button, text] = [await topOf('.acts .btn'), await topOf('p')]
  expect(button.y).toBeLessThan(text.y)
  for (const box of await problem.locator('.btn').all()) {
    const { x = 0, width = 999 } = (await box.boundingBox()) ?? {}
    expect(x + width).toBeLessThanOrEqual(390)
  }
})

test('a delivery takes one line of the list, and a replay has a page of its own', async () => {
  await using receiver = await startWebhookReceiver()
  const id = await endpointOfTest(ofFile(), { name: own('shop'), url: receiver.url })
  await push(ofFile().publicUrl, pushBody({ trackingIds: [own('1001')] }))
  const page = await logIn({ viewport: { width: 1280, height: 800 } })
  await expect
    .poll(async () => {
      await page.goto(`/deliveries?endpoint=${id}&state=delivered`)
      return await page.getByRole('row').count()
    })
    .toBe(2)
  expect((await page.getByRole('row').last().boundingBox())?.height).toBeLessThan(36)
  await page.getByRole('link', { name: 'Replay deliveries' }).click()
  await page.waitForURL(`**/deliveries/replay?endpoint=${id}`)
  expect(await page.getByLabel('What was sent to').inputValue()).toBe(id)
})

test('a test that is redirected names the target and leads to the URL', async () => {
  const target = createServer((_request, response) => response.writeHead(302, { location: 'https://shop.example/new' }).end('moved'))
  const id = await endpointOfTest(ofFile(), { name: own('moved'), url: `http://127.0.0.1:${await listenInTest(target)}/hook` })
  const page = await logIn()
  await page.goto(`/webhooks/${id}`)
  await page.getByRole('button', { name: 'Send test' }).click()
  expect(await page.getByRole('alert').textContent()).toContain('Location: https://shop.example/new')
  await page.getByRole('alert').getByRole('link', { name: 'Edit the URL' }).click()
  await page.waitForURL(`**/webhooks/${id}/edit#url`)
})
