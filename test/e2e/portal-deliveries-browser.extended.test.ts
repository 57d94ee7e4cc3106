import { readFile } from 'node:fs/promises'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { browserOfFile } from '../support/portal/browser.ts'
import { openLoggedIn } from '../support/portal/portal-page.ts'
import { endpointOfTest } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay/relay-of-file.ts'
import { LONG } from '../support/runner/long-form.ts'

const ofFile = relayOfFile('http://127.0.0.1:9', { delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['1h'] } })
const openPage = browserOfFile()
const own = idsOfTest()

const logIn = (options: BrowserContextOptions = {}) => openLoggedIn(openPage, ofFile().internalUrl, options)

const addWebhook = (name: string, url: string) => endpointOfTest(ofFile(), { name, url })

const pushEvent = (id: string) => push(ofFile().publicUrl, pushBody({ trackingIds: [id] }))
const goTo = (page: Page, name: string) => page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name, exact: true }).click()
const heading = (page: Page) => page.getByRole('heading', { level: 1 }).textContent()

/** Opens the deliveries of a webhook, and reloads until the page shows the text. */
async function showDeliveries(page: Page, webhook: string, text: string): Promise<void> {
  await goTo(page, 'Deliveries')
  await page.getByLabel('Webhook', { exact: true }).selectOption(webhook)
  await page.getByRole('button', { name: 'Show' }).click()
  const table = page.getByRole('table', { name: 'Deliveries, newest first' })
  await expect
    .poll(async () => {
      await page.reload()
      return (await table.count()) === 0 ? '' : await table.textContent()
    })
    .toContain(text)
}

/** The tests run with script, as in most browsers. `npm run faults` runs them without. */
const javaScriptEnabled = !LONG

describe(`with the script ${javaScriptEnabled ? 'on' : 'off'}`, () => {
  test('a refused event is found with its answer, and sent again when the webhook accepts it', async () => {
    await using receiver = await startWebhookReceiver()
    receiver.answer(() => ({ status: 422, body: 'unknown <i>kind</i>' }))
    const name = own('warehouse')
    await addWebhook(name, receiver.url)
    await pushEvent(own('1001'))
    const page = await logIn({ javaScriptEnabled })
    await showDeliveries(page, name, 'unknown <i>kind</i>')
    await page.getByRole('table').getByRole('link', { name: 'TerminalArrived' }).click()
    expect(await heading(page)).toBe(`TerminalArrived to ${name}`)
    expect(await page.getByRole('region', { name: 'What came back' }).textContent()).toContain('unknown <i>kind</i>')
    receiver.answer(() => 200)
    await page.getByRole('button', { name: 'Send now' }).click()
    await expect
      .poll(async () => {
        await page.reload()
        return await page.getByRole('main').textContent()
      })
      .toContain(`${name} accepted it.`)
    const before = receiver.pushes.length
    await page.getByRole('button', { name: 'Send again' }).click()
    await expect.poll(() => receiver.pushes.length).toBe(before + 1)
  })

  test('a replay is counted first, and is made only once even if its page is loaded again', async () => {
    await using receiver = await startWebhookReceiver()
    const name = own('shop')
    await addWebhook(name, receiver.url)
    for (const id of ['1001', '1002']) await pushEvent(own(id))
    const page = await logIn({ javaScriptEnabled })
    await showDeliveries(page, name, 'delivered')
    await expect.poll(() => receiver.pushes.length).toBe(2)
    await page.getByRole('link', { name: 'Replay deliveries' }).click()
    const count = async () => {
      await page.getByLabel('and is').selectOption('delivered')
      await page.getByRole('button', { name: 'Count first' }).click()
      return await page.getByRole('status').textContent()
    }
    await expect.poll(count).toContain('2 deliveries of 2 parcels')
    await page.getByRole('button', { name: `Replay 2 deliveries to ${name}` }).click()
    expect(await page.getByRole('status').textContent()).toContain('2 deliveries are queued again')
    await expect.poll(() => receiver.pushes.length).toBe(4)
    await page.reload()
    expect(await page.getByRole('status').textContent()).toContain('nothing was done twice')
    expect(receiver.pushes).toHaveLength(4)
  })

  test('a push in quarantine is shown, downloaded unchanged, and reprocessed', async () => {
    const body = `{"status":"${own('strange')}","detailedStatus":"x","eventTime":"soon","trackingIds":["1001"]}`
    await push(ofFile().publicUrl, body)
    const page = await logIn({ javaScriptEnabled })
    await goTo(page, 'Inbox')
    expect(await page.getByRole('table', { name: 'By reason' }).textContent()).toContain('eventTime is not a UTC time')
    await page.getByRole('table', { name: 'Pushes in quarantine, newest first' }).getByRole('link').first().click()
    expect(await heading(page)).toMatch(/^Push \d+$/)
    expect(await page.locator('pre').textContent()).toBe(body)
    expect(await page.locator('mark').textContent()).toBe('"soon"')
    await page.getByRole('link', { name: 'Indented' }).click()
    expect(await page.locator('pre').textContent()).toContain('\n  "eventTime": "soon",\n')
    const saving = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Download the exact bytes' }).click()
    const saved = await saving
    expect(saved.suggestedFilename()).toMatch(/^push-\d+\.bin$/)
    expect(await readFile(await saved.path(), 'utf8')).toBe(body)
    await page.getByRole('button', { name: 'Reprocess' }).click()
    expect(await page.getByRole('status').textContent()).toContain('It is still not understood.')
    await goTo(page, 'Inbox')
    await page.getByRole('button', { name: 'Reprocess: eventTime is not a UTC time' }).click()
    expect(await page.getByRole('status').textContent()).toContain('still not understood')
    await page.getByLabel('Reason', { exact: true }).selectOption({ label: 'eventTime is not a UTC time' })
    await page.getByRole('button', { name: 'Show' }).click()
    await page.getByRole('table', { name: 'Pushes in quarantine, newest first' }).getByRole('link').first().click()
    await page.getByRole('button', { name: 'Dismiss' }).click()
    expect(await page.getByRole('button', { name: 'Dismiss' }).count()).toBe(0)
  })
})
