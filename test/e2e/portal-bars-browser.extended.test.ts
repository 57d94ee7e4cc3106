import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startWorld, type World } from '../faults/world.ts'
import { answerBody, pushBody } from '../support/history/builders.ts'
import { expectedSignature, startWebhookReceiver, type WebhookReceiver } from '../support/network/webhook-receiver.ts'
import { browserOfFile } from '../support/portal/browser.ts'
import { logInOn } from '../support/portal/portal-page.ts'
import { crawl } from '../support/portal/portal-pages.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { type Sections, SHARED_KEY } from '../support/relay/relay.ts'
import { idsOfTest } from '../support/relay/relay-of-file.ts'
import { LONG, onlyLong } from '../support/runner/long-form.ts'
import { createLastingDatabase } from '../support/store/postgres-database.ts'
import { changeStoredRows } from '../support/store/stored-rows.ts'

/** The screen of a telephone. Its browser runs no scripts in these tests. */
const WIDTH = 390
const VISITOR = { viewport: { width: WIDTH, height: 844 }, javaScriptEnabled: false }

const SECTIONS = {
  delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['1h'] },
  // The poller checks for silence every second, and a push is late after one second.
  poll: { cron: '* * * * * *', missedPushGrace: '1s' },
}

const openPage = browserOfFile()
const own = idsOfTest()

const [ENGINE, sectionsOf]: readonly [name: string, sections: () => Promise<Sections>] = LONG
  ? ['PostgreSQL', async () => onPostgres(await createLastingDatabase())]
  : ['SQLite', async () => ({})]

describe(`without script, ${WIDTH} px wide, on ${ENGINE}`, () => {
  let world: World
  let store = ''
  let page: Page

  beforeAll(async () => {
    const sections = await sectionsOf()
    world = await startWorld({ ...SECTIONS, ...sections })
    store = typeof sections.store === 'string' ? sections.store : world.databasePath
    page = await openPage({ baseURL: world.internalUrl, ...VISITOR })
    await logInOn(page)
    await fits()
  })
  afterAll(() => world.stop())

  /** Expects that the page is no wider than the window. */
  async function fits(): Promise<void> {
    // Wait, because the page has another width until its style sheet is loaded.
    await page.waitForLoadState()
    expect([page.url(), await page.evaluate('document.documentElement.scrollWidth')]).toEqual([page.url(), WIDTH])
  }
  async function goTo(name: string): Promise<void> {
    await press('Menu')
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name }).click()
    await fits()
  }
  async function follow(name: string | RegExp): Promise<void> {
    await page.getByRole('main').getByRole('link', { name }).first().click()
    await fits()
  }
  async function press(name: string): Promise<void> {
    await page.getByRole('button', { name, exact: true }).click()
    await fits()
  }
  const heading = () => page.getByRole('heading', { level: 1 }).textContent()
  const shown = async () => ((await page.getByRole('main').textContent()) ?? '').replaceAll(/\s+/g, ' ')
  const untilShown = (text: string | RegExp) =>
    expect
      .poll(async () => {
        await page.reload()
        return await shown()
      })
      .toMatch(text)

  /** Adds a webhook in the browser, and returns the key that the page shows. The webhook is removed after the test. */
  async function addWebhook(name: string, url: string): Promise<string> {
    await goTo('Webhooks')
    await follow('Add webhook')
    await page.getByLabel('URL', { exact: true }).fill(url)
    await page.getByLabel('Name', { exact: true }).fill(name)
    await press('Add webhook')
    expect(await heading()).toBe(`${name} is added`)
    const key = (await page.getByRole('main').locator('#key').textContent()) ?? ''
    await follow(`I have kept the key; show ${name}`)
    const id = idOnPage()
    onTestFinished(async () => {
      await (await operatorOf(world))('DELETE', `/relay/endpoints/${id}`)
    })
    return key
  }
  const idOnPage = () => /\/webhooks\/(\d+)/.exec(page.url())?.[1] ?? expect.fail(`no webhook: ${page.url()}`)

  async function pushEvent(fields: Parameters<typeof pushBody>[0]): Promise<void> {
    expect((await world.push(pushBody(fields))).status).toBe(200)
  }

  test('a webhook is added by URL and name, and its key signs its events and is shown once', async () => {
    await using receiver = await startWebhookReceiver()
    const name = own('shop')
    const key = await addWebhook(name, receiver.url)
    expect(Buffer.from(key, 'base64')).toHaveLength(32)
    await pushEvent({ trackingIds: [own('1001')] })
    await expect.poll(() => signedWith(receiver, key)).toEqual([true])
    const id = idOnPage()
    await follow('Edit')
    const sources = [await page.content()]
    const visitor = await loggedInAt(world.internalUrl)
    sources.push(...(await crawl(visitor)).values())
    const operator = await operatorOf(world)
    for (const path of [`/relay/endpoints/${id}`, ...LISTS]) {
      const { status, text } = await operator('GET', path)
      expect([path, status]).toEqual([path, 200])
      sources.push(text)
    }
    expect(sources.length).toBeGreaterThan(20)
    sources.push(await (await fetch(`${world.internalUrl}/metrics`)).text(), JSON.stringify(world.lines))
    for (const secret of [key, SHARED_KEY]) expect(sources.filter((source) => source.includes(secret))).toEqual([])
  })

  test('a parcel is found by its number, and shows whether a push or a poll found each entry', async () => {
    const [id, number] = [own('1001'), `PP10000000${own('')}SE`]
    const eventTime = new Date().toISOString()
    const polled = { status: 'DeliveryStarted', detailedStatus: 'Out', eventTimestamp: new Date(Date.now() - 60_000).toISOString() }
    await pushEvent({ trackingIds: [id], location: 'Kiruna', eventTime })
    world.carrier.says.set(number, () => answerBody({ trackingIds: [id], statuses: [polled] }))
    await world.all(number)
    for (const identifier of [id, number]) {
      await goTo('Parcels')
      await page.getByRole('searchbox', { name: /Tracking number/ }).fill(identifier)
      await page.getByRole('searchbox', { name: /Tracking number/ }).press('Enter')
      await page.waitForURL(`**/parcels/${identifier}`)
      await fits()
      expect(await heading()).toBe(number)
      expect(await shown()).toContain(id)
      const rows = page.getByRole('table', { name: 'History, newest first' }).getByRole('row')
      expect(await rows.filter({ hasText: 'Kiruna' }).textContent()).toMatch(/[\d.]+ s later.*push.*no poll has listed it yet/s)
      expect(await rows.filter({ hasText: 'DeliveryStarted' }).textContent()).toMatch(
        /\d\d:\d\d.*1 min (\d+ s )?later.*poll.*from before we knew/s,
      )
    }
  })

  onlyLong(test)('events for a disabled webhook wait, and are sent with a signature when it is enabled', async () => {
    await using receiver = await startWebhookReceiver()
    const name = own('shop')
    const key = await addWebhook(name, receiver.url)
    await page.getByText('Disable', { exact: true }).click()
    await press(`Disable ${name}`)
    expect(await shown()).toContain('disabled')
    await pushEvent({ trackingIds: [own('1001')] })
    await untilShown(/Nothing is sent\. 1 event waits, the oldest since [^.]*\. They wait until it is enabled/)
    expect(receiver.pushes).toEqual([])
    await press('Enable')
    await expect.poll(() => signedWith(receiver, key)).toEqual([true])
    expect(receiver.pushes[0]?.body.toString()).toContain(`"${own('1001')}"`)
    await untilShown('It is sent each new event. Nothing waits.')
  })

  test('a failing webhook is explained in one sentence with its answer, repaired, and retried', async () => {
    await using receiver = await startWebhookReceiver()
    receiver.answer(() => ({ status: 500, body: 'the till is closed' }))
    const name = own('till')
    const key = await addWebhook(name, receiver.url)
    for (const id of ['1001', '1002', '1003', '1004', '1005']) await pushEvent({ trackingIds: [own(id)] })
    await goTo('Overview')
    await untilShown('It answers 500 the till is closed: it can be reached, but fails inside.')
    await fits()
    await follow(`Open ${name}`)
    expect(await heading()).toBe(name)
    expect(await shown()).toContain('5 events wait')
    expect(await shown()).toContain('It answers 500 the till is closed: it can be reached, but fails inside.')
    const failed = receiver.pushes.length
    receiver.answer(() => 200)
    await press('Retry now')
    await expect.poll(() => new Set(signedWith(receiver, key, failed))).toEqual(new Set([true]))
    await untilShown('It is sent each new event. Nothing waits.')
    expect(receiver.pushes.length).toBe(failed + 5)
  })

  test('a quarantined push shows where its body is wrong, and is recorded when it can be read', async () => {
    const [id, wrong] = [own('1001'), '"2026-03-01 10:00"']
    const body = pushBody({ trackingIds: [id], eventTime: '2026-03-01 10:00' }).toString()
    await world.push(body)
    await goTo('Inbox')
    const table = page.getByRole('table', { name: 'Pushes in quarantine, newest first' })
    expect(await table.getByRole('row').nth(1).textContent()).toContain(`eventTime: ${wrong}`)
    await table.getByRole('link').first().click()
    await fits()
    expect(await page.locator('mark').textContent()).toBe(wrong)
    const from = body.indexOf(wrong)
    expect(await shown()).toContain(`The fault is in eventTime, bytes ${from} to ${from + wrong.length - 1}.`)
    await press('Reprocess')
    expect(await page.getByRole('status').textContent()).toContain('It is still not understood.')
    // Replace the body, so that the relay acts like a newer version that can read the push.
    const understood = pushBody({ trackingIds: [id] })
    expect(await changeStoredRows(store, 'update inbox set body = ? where body = ?', understood, Buffer.from(body))).toBe(1)
    await press('Reprocess')
    expect(await page.getByRole('status').textContent()).toContain('It is recorded')
    await follow(id)
    expect(await heading()).toBe(id)
    expect(await shown()).toContain('TerminalArrived')
  })

  test('the carrier’s page says when a silence was noticed, and how many entries polls found', async () => {
    const id = own('1001')
    // The relay can notice a silence only after enough pushes have arrived.
    for (let nth = 0; nth < 10; nth++) await pushEvent({ trackingIds: [own(`200${nth}`)] })
    await pushEvent({ trackingIds: [id] })
    const sinceMs = Date.now()
    const statuses = Array.from({ length: 6 }, (_, nth) => ({
      detailedStatus: `Stop${nth}`,
      eventTimestamp: new Date(sinceMs + 10 + nth).toISOString(),
    }))
    world.carrier.says.set(id, () => answerBody({ trackingIds: [id], statuses: statuses.toReversed() }))
    await page.goto(`/parcels/${id}`)
    await press('Refresh now')
    await goTo('Carrier')
    await untilShown(/but pushes nothing since/)
    await fits()
    const text = await shown()
    expect(text).toMatch(/Pushes.*silent.*for \d+ s; 6 entries were found by polls alone\./)
    // The relay notices the silence as soon as the evidence suffices, which may be before it has all six entries.
    expect(text).toMatch(
      /Noticed.*\d\d:\d\d.*, when [4-6] entries had no push\. The chance of this, if pushes worked, is less than 1 in 10,000\./,
    )
    expect(text).toMatch(/Missed since then ?6/)
    await goTo('Overview')
    expect(await shown()).toMatch(/No push comes since.*polls found 6 entries since then that no push brought/)
    await follow('Show the evidence')
    expect(await heading()).toBe('Carrier')
  })
})

/** Returns whether each push to the webhook, from index `from` on, is signed with this key. */
function signedWith({ pushes }: WebhookReceiver, key: string, from = 0): readonly boolean[] {
  return pushes.slice(from).map(({ body, headers }) => headers['x-service-hmac-sha256'] === expectedSignature(body, key))
}

const LISTS = [
  '/relay/endpoints',
  '/relay/deliveries',
  '/relay/audit',
  '/relay/events',
  '/relay/operator-events',
  '/relay/inbox',
  '/relay/jobs',
  '/relay/parcels',
  '/relay/replicas',
  '/relay/tallies',
  '/relay/upstream',
]
