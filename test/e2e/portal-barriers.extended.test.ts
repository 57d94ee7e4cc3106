import type { Page } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { browserOfFile } from '../support/portal/browser.ts'
import { barriersOn, LOOKS, logInOn } from '../support/portal/portal-page.ts'
import { endpointOfTest } from '../support/relay/manage.ts'
import { ADMIN, push } from '../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay/relay-of-file.ts'
import { byForm } from '../support/runner/long-form.ts'

const ofFile = relayOfFile('http://127.0.0.1:9', { delivery: { allowNetworks: ['127.0.0.0/8'] } })
const openPage = browserOfFile()
const own = idsOfTest()

async function tabTo(page: Page, name: string): Promise<void> {
  const focused = () => page.evaluate<string>(NAME_OF_FOCUSED)
  for (let presses = 0; presses < 40 && (await focused()) !== name; presses++) await page.keyboard.press('Tab')
  expect(await focused()).toBe(name)
}

const NAME_OF_FOCUSED = `(document.activeElement.labels?.[0] ?? document.activeElement).textContent.trim()`

test('a webhook can be added with the keyboard alone, from the login to its key', async () => {
  await using receiver = await startWebhookReceiver()
  const name = own('shop')
  const page = await openPage({ baseURL: ofFile().internalUrl })
  onTestFinished(() => page.context().close())
  await page.goto('/')
  await tabTo(page, 'User name')
  await page.keyboard.type(ADMIN.username)
  await tabTo(page, 'Password')
  await page.keyboard.type(ADMIN.password)
  await page.keyboard.press('Enter')
  await page.getByRole('navigation', { name: 'Main' }).waitFor()
  await tabTo(page, 'Webhooks')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/webhooks')
  await tabTo(page, 'Skip to content')
  await page.keyboard.press('Enter')
  await tabTo(page, 'Add webhook')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/webhooks/new')
  await tabTo(page, 'URL')
  await page.keyboard.type(receiver.url)
  await tabTo(page, 'Name')
  await page.keyboard.type(name)
  await tabTo(page, 'Add webhook')
  await page.keyboard.press('Enter')
  await expect.poll(() => page.getByRole('heading', { level: 1 }).textContent()).toBe(`${name} is added`)
  expect(await page.locator('#key').textContent()).toMatch(/^[\w+/]{43}=$/)
})

test.each(LOOKS.slice(0, byForm(1, 1, LOOKS.length)))('no page has a serious accessibility barrier, %s', async (_look, options) => {
  await using receiver = await startWebhookReceiver()
  const id = own('1001')
  await push(ofFile().publicUrl, pushBody({ trackingIds: [id] }))
  const page = await openPage({ baseURL: ofFile().internalUrl, bypassCSP: true, ...options })
  onTestFinished(() => page.context().close())
  await page.goto('/login')
  const barriers: string[] = []
  const look = async () => {
    barriers.push(...(await barriersOn(page)))
  }
  await look()
  await logInOn(page)
  await page.goto('/webhooks/new')
  await page.getByLabel('URL', { exact: true }).fill(receiver.url)
  await page.getByLabel('Name', { exact: true }).fill(own('axe'))
  await page.getByRole('button', { name: 'Add webhook' }).click()
  await look()
  await page.getByRole('link', { name: 'I have kept the key' }).click()
  await page.getByRole('button', { name: 'Send test' }).click()
  await look()
  for (const path of [
    '/',
    '/carrier',
    '/webhooks',
    '/webhooks/new',
    '/webhooks/999',
    '/parcels',
    '/parcels?query=ZZZZ',
    `/parcels/${id}`,
    `/parcels/${id}?view=consumer&language=en`,
    '/settings',
    '/audit',
    '/check',
    '/reload',
    '/inbox/refusals',
    '/events',
    '/jobs',
  ]) {
    await page.goto(path)
    await look()
  }
  expect(barriers).toEqual([])
})

test.each(LOOKS.slice(0, byForm(1, 1, LOOKS.length)))(
  'no page about deliveries or the inbox has a serious accessibility barrier, %s',
  async (_look, options) => {
    await using receiver = await startWebhookReceiver()
    receiver.answer(() => ({ status: 422, body: 'unknown kind' }))
    const name = own('axe')
    await endpointOfTest(ofFile(), { name, url: receiver.url })
    await push(ofFile().publicUrl, pushBody({ trackingIds: [own('1001')] }))
    await push(ofFile().publicUrl, `{"of":"${name}"}`)
    const page = await openPage({ baseURL: ofFile().internalUrl, bypassCSP: true, ...options })
    onTestFinished(() => page.context().close())
    await logInOn(page)
    const barriers: string[] = []
    const look = async () => void barriers.push(...(await barriersOn(page)))
    for (const path of [
      '/deliveries?state=cancelled&from=2020-01-01T00:00',
      '/deliveries?parcel=NOBODYKNOWS1',
      '/inbox?state=expired',
      '/inbox',
      '/inbox?state=all',
    ]) {
      await page.goto(path)
      await look()
    }
    await page.goto('/inbox')
    await page.getByRole('table', { name: 'By reason' }).getByRole('link').first().click()
    await look()
    await page.getByRole('button', { name: 'Reprocess' }).click()
    await look()
    await page.goto('/deliveries')
    await look()
    await page.getByRole('table').getByRole('link', { name: 'TerminalArrived' }).first().click()
    await look()
    await page.goto('/deliveries/replay')
    await page.getByLabel('and is').selectOption('delivered')
    await page.getByRole('button', { name: 'Count first' }).click()
    await look()
    expect(barriers).toEqual([])
  },
)
