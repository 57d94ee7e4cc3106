import type { Page } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { browserOfFile } from '../support/portal/browser.ts'
import { logInOn } from '../support/portal/portal-page.ts'
import { endpointOfTest, operatorOf } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay/relay-of-file.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'

const ofFile = relayOfFile('http://127.0.0.1:9', { delivery: { allowNetworks: ['127.0.0.0/8'] } })
const openPage = browserOfFile()
const own = idsOfTest()

/** Opens a page and logs in. `asked`: the paths that the page requests. `left`: the paths of requests that failed or were cut off. */
async function logIn() {
  const page = await openPage({ baseURL: ofFile().internalUrl })
  onTestFinished(() => page.context().close())
  const asked: string[] = []
  const left: string[] = []
  page.on('request', (request) => asked.push(new URL(request.url()).pathname))
  page.on('requestfailed', (request) => left.push(new URL(request.url()).pathname))
  await logInOn(page)
  return { page, asked, left }
}

const HARMFUL = [
  '"><img src=x onerror=alert(1)>',
  '</td></tr></table><script>alert(2)</script>',
  "<svg/onload='alert(3)'>",
  '<iframe srcdoc="<script>alert(4)</script>">',
]

const streaming = (page: Page) => page.getByText('Changes show by themselves.').waitFor()

const addWebhook = () => endpointOfTest(ofFile(), { name: own('till'), url: `${NO_CARRIER}/` })

/** Makes the page believe that its tab is hidden or shown. */
async function hide(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })`)
  await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
}

test('a parcel’s page shows a new entry by itself, and reloads only its own path', async () => {
  const id = own('1001')
  await push(ofFile().publicUrl, pushBody({ trackingIds: [id] }))
  const { page, asked } = await logIn()
  await page.goto(`/parcels/${id}`)
  await streaming(page)
  expect(await page.getByRole('link', { name: 'Load again' }).isVisible()).toBe(false)
  const before = asked.length
  await push(
    ofFile().publicUrl,
    pushBody({ trackingIds: [id], status: 'DeliveryStarted', location: 'Kiruna', eventTime: '2026-03-02T10:00:00Z' }),
  )
  await page.getByRole('table', { name: 'History, newest first' }).getByText('Kiruna').waitFor()
  expect(await page.locator('#lead').textContent()).toContain('Kiruna')
  expect(asked.slice(before)).toEqual([`/parcels/${id}`])
})

test('a problem appears by itself in the title, the lead and the links, and the focus stays', async () => {
  const operator = await operatorOf(ofFile())
  const id = await addWebhook()
  const { page } = await logIn()
  await page.goto(`/webhooks/${id}`)
  await streaming(page)
  await page.getByRole('button', { name: 'Send test' }).focus()
  await operator('PATCH', `/relay/endpoints/${id}`, { enabled: false })
  await page.getByText('Nothing is sent.').waitFor()
  expect(await page.title()).toBe(`${own('till')}, disabled · Webhooks · parcel relay`)
  // The button "Enable" is not shown, because it would replace the button that has the focus.
  expect(await page.getByRole('button', { name: 'Enable' }).count()).toBe(0)
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Send test')
  await push(ofFile().publicUrl, 'no JSON')
  await page.getByRole('navigation', { name: 'Main' }).getByText('1 quarantined').waitFor()
})

test('a hidden tab closes its stream, and shows what changed when it is shown again', async () => {
  const id = await addWebhook()
  const operator = await operatorOf(ofFile())
  const { page, asked, left } = await logIn()
  await page.goto(`/webhooks/${id}`)
  await streaming(page)
  await hide(page, true)
  await expect.poll(() => left).toContain('/live')
  expect(await page.getByRole('link', { name: 'Load again' }).isVisible()).toBe(true)
  await operator('PATCH', `/relay/endpoints/${id}`, { enabled: false })
  const before = asked.length
  expect(await page.title()).not.toContain('disabled')
  await hide(page, false)
  await page.getByText('Nothing is sent.').waitFor()
  expect(asked.slice(before)).toEqual(['/live', `/webhooks/${id}`])
})

test('W1: no script from a push or a name runs in a browser', async () => {
  const { page } = await logIn()
  const ran: string[] = []
  page.on('dialog', (dialog) => {
    ran.push(dialog.message())
    void dialog.dismiss()
  })
  // A script that the content security policy blocked is a fault too.
  page.on('console', (message) => ran.push(...(message.type() === 'error' ? [message.text()] : [])))
  page.on('pageerror', (error) => ran.push(error.message))
  const id = own('1001')
  const event = (text: string, nth: number) =>
    pushBody({ trackingIds: [id], status: text, location: text, texts: { en: text }, eventTime: `2026-03-0${nth + 1}T10:00:00Z` })
  const [first = '', ...later] = HARMFUL
  await push(ofFile().publicUrl, event(first, 0))
  await page.goto(`/parcels/${id}`)
  await streaming(page)
  const history = page.getByRole('table', { name: 'History, newest first' })
  expect(await history.textContent()).toContain(first)
  for (const [nth, text] of later.entries()) {
    await push(ofFile().publicUrl, event(text, nth + 1))
    await history.getByText(text, { exact: true }).first().waitFor()
  }
  await page.goto(`/parcels?query=${encodeURIComponent(first)}`)
  expect(await page.getByRole('searchbox', { name: /Tracking number/ }).inputValue()).toBe(first)
  expect(ran).toEqual([])
})

test('a page that gets no stream slot offers to load again', async () => {
  const { page } = await logIn()
  await page.route('**/live?*', (route) => route.fulfill({ status: 503 }))
  const refused = page.waitForResponse('**/live?*')
  await page.goto('/')
  await refused
  expect(await page.getByRole('link', { name: 'Load again' }).isVisible()).toBe(true)
  expect(await page.getByText('Changes show by themselves.').isVisible()).toBe(false)
})

test('a page whose session ended says in its heading and tab since when it is out of date', async () => {
  const { page } = await logIn()
  await page.goto('/')
  await streaming(page)
  const title = await page.title()
  const other = await page.context().newPage()
  await other.goto('/')
  await other.getByRole('button', { name: 'Log out' }).click()
  await page.getByRole('heading', { level: 1, name: /Not up to date since \d\d:\d\d/ }).waitFor()
  expect(await page.title()).toMatch(/^Not up to date since \d\d:\d\d:\d\d · /)
  expect(await page.getByText('Changes show by themselves.').isVisible()).toBe(false)
  await logInOn(other)
  // A tab that is shown again opens its stream at once.
  await hide(page, true)
  await hide(page, false)
  await streaming(page)
  await expect.poll(() => page.locator('h1 .stale').count()).toBe(0)
  expect(await page.title()).toBe(title)
})
