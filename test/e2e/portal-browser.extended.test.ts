import type { Page } from 'playwright-core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { expectedSignature, startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { browserOfFile } from '../support/portal/browser.ts'
import { logInOn } from '../support/portal/portal-page.ts'
import { push } from '../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay/relay-of-file.ts'
import { LONG } from '../support/runner/long-form.ts'

const ofFile = relayOfFile('http://127.0.0.1:9', { delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['1h'] } })
const openPage = browserOfFile()
const own = idsOfTest()

async function logIn(options: Parameters<typeof openPage>[0] = {}): Promise<Page> {
  const page = await openPage({ baseURL: ofFile().internalUrl, ...options })
  onTestFinished(() => page.context().close())
  await logInOn(page)
  return page
}

async function addWebhook(page: Page, name: string, url: string): Promise<string> {
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Webhooks' }).click()
  await page.getByRole('link', { name: 'Add webhook' }).click()
  await page.getByLabel('URL', { exact: true }).fill(url)
  await page.getByLabel('Name', { exact: true }).fill(name)
  await page.getByRole('button', { name: 'Add webhook' }).click()
  return (await page.locator('#key').textContent()) ?? ''
}

const goTo = (page: Page, name: string) => page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name, exact: true }).click()
const heading = (page: Page) => page.getByRole('heading', { level: 1 }).textContent()

/** The tests run with script, as in most browsers. `npm run faults` runs them without. */
const javaScriptEnabled = !LONG

describe(`with the script ${javaScriptEnabled ? 'on' : 'off'}`, () => {
  test('a webhook is added, its key is shown once, and its events are signed with this key', async () => {
    await using receiver = await startWebhookReceiver()
    const name = own('shop')
    const page = await logIn({ javaScriptEnabled })
    const key = await addWebhook(page, name, receiver.url)
    expect(await heading(page)).toBe(`${name} is added`)
    expect(Buffer.from(key, 'base64')).toHaveLength(32)
    await push(ofFile().publicUrl, pushBody({ trackingIds: [own('1001')] }))
    await expect.poll(() => receiver.pushes.length).toBe(1)
    expect(receiver.pushes[0]?.headers['x-service-hmac-sha256']).toBe(expectedSignature(receiver.pushes[0]?.body ?? Buffer.of(), key))
    await page.getByRole('link', { name: `I have kept the key; show ${name}` }).click()
    expect(await heading(page)).toBe(name)
    for (const path of [page.url(), '/webhooks', `${page.url()}/edit`]) {
      await page.goto(path)
      expect(await page.content()).not.toContain(key)
    }
  })

  test('a webhook is disabled, its events wait, and they are sent when it is enabled', async () => {
    await using receiver = await startWebhookReceiver()
    const name = own('shop')
    const page = await logIn({ javaScriptEnabled })
    await addWebhook(page, name, receiver.url)
    await page.getByRole('link', { name: `show ${name}` }).click()
    await page.getByText('Disable', { exact: true }).click()
    await page.getByRole('button', { name: `Disable ${name}` }).click()
    expect(await page.title()).toBe(`${name}, disabled · Webhooks · parcel relay`)
    await push(ofFile().publicUrl, pushBody({ trackingIds: [own('1001')] }))
    expect(receiver.pushes).toHaveLength(0)
    await page.getByRole('button', { name: 'Enable' }).click()
    await expect.poll(() => receiver.pushes.length).toBe(1)
  })

  test('a parcel is found by its identifier, and shows where each entry came from', async () => {
    const id = own('1001')
    await push(ofFile().publicUrl, pushBody({ trackingIds: [id], location: 'Kiruna' }))
    const page = await logIn({ javaScriptEnabled })
    await page.getByLabel('Find a parcel').fill(id)
    await page.getByLabel('Find a parcel').press('Enter')
    await page.waitForURL(`**/parcels/${id}`)
    expect(await heading(page)).toBe(id)
    const row = page.getByRole('table', { name: 'History, newest first' }).getByRole('row').nth(1)
    expect(await row.textContent()).toMatch(/Kiruna.*push.*no poll has listed it yet/)
  })

  test('a failing webhook is explained in one sentence with its answer, and retried', async () => {
    await using receiver = await startWebhookReceiver()
    receiver.answer(() => ({ status: 503, body: 'the <b>till</b> is closed' }))
    const name = own('till')
    const page = await logIn({ javaScriptEnabled })
    await addWebhook(page, name, receiver.url)
    for (const nth of [1, 2, 3, 4, 5]) await push(ofFile().publicUrl, pushBody({ trackingIds: [own(`200${nth}`)] }))
    await expect
      .poll(async () => {
        await page.goto('/')
        return await page.getByRole('main').textContent()
      })
      .toContain('It answers 503 the <b>till</b> is closed: it can be reached, but fails inside.')
    await page.getByRole('link', { name: `Open ${name}` }).click()
    expect(await page.title()).toBe(`${name}, failing · Webhooks · parcel relay`)
    expect(await page.getByRole('main').textContent()).toContain('5 events wait')
    receiver.answer(() => 200)
    await page.getByRole('button', { name: 'Retry now' }).click()
    await expect
      .poll(async () => {
        await page.reload()
        return await page.getByRole('main').textContent()
      })
      .toContain('It is sent each new event. Nothing waits.')
  })

  test('a list of parcels is watched, and watching one of them is stopped', async () => {
    const [one, other] = [own('2101'), own('2102')]
    const page = await logIn({ javaScriptEnabled })
    await goTo(page, 'Parcels')
    if (!(await page.getByLabel('Tracking numbers or ids, one a line').isVisible()))
      await page.getByText('Watch parcels', { exact: true }).click()
    await page.getByLabel('Tracking numbers or ids, one a line').fill(`${one}\n${other}\n?`)
    await page.getByRole('button', { name: 'Watch these parcels' }).click()
    expect(await page.getByRole('alert').textContent()).toMatch(/2 parcels are watched, 2 new\. 1 line holds no identifier:\s+Line 3: \?/)
    await page.getByRole('link', { name: one, exact: true }).click()
    await page.getByRole('button', { name: 'Stop watching' }).click()
    expect(await page.getByRole('main').textContent()).toContain('ended: somebody stopped them')
    await page.getByRole('button', { name: 'Watch', exact: true }).click()
    expect(await page.getByRole('button', { name: 'Stop watching' }).isVisible()).toBe(true)
  })

  test('the portal shows the calls to the carrier, a setting, and who changed what', async () => {
    const page = await logIn({ javaScriptEnabled })
    await addWebhook(page, own('shop'), 'http://127.0.0.1:9/hook')
    await goTo(page, 'Carrier')
    expect(await page.getByRole('main').textContent()).toMatch(/of today’s [\d,]+ calls are used/)
    await goTo(page, 'Settings')
    await page.getByRole('link', { name: 'Audit: who changed what' }).click()
    await page.waitForURL('**/audit')
    expect(await page.getByRole('main').textContent()).toMatch(/webhook added/)
    await goTo(page, 'Settings')
    await page.getByLabel('Setting', { exact: true }).fill('callsPerDay')
    await page.getByRole('button', { name: 'Show' }).click()
    expect(await page.getByText('upstream.callsPerDay').isVisible()).toBe(true)
    expect(await page.getByText('upstream.baseUrl').count()).toBe(0)
  })

  test('a test push is sent, and its answer is shown', async () => {
    await using receiver = await startWebhookReceiver()
    receiver.answer(() => ({ status: 503, body: '<b>closed</b>' }))
    const page = await logIn({ javaScriptEnabled })
    await addWebhook(page, own('shop'), receiver.url)
    await page.getByRole('link', { name: 'I have kept the key' }).click()
    await page.getByRole('button', { name: 'Send test' }).click()
    expect(await page.getByRole('alert').textContent()).toMatch(
      /^ The test was refused: 503 after \d+ ms, <b>closed<\/b>\. It answers 503: it can be reached, but fails inside\. Give its answer to the people who run it\.$/,
    )
  })
})
