import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../faults/world.ts'
import { pushBody } from '../support/history/builders.ts'
import { browserOfFile } from '../support/portal/browser.ts'
import { openLoggedIn } from '../support/portal/portal-page.ts'
import { crawl } from '../support/portal/portal-pages.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { formIn } from '../support/portal/sent-form.ts'
import { clockIn, timesInOtherZones, type Zone } from '../support/portal/shown-times.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfFile } from '../support/relay/relay-of-file.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { changeStoredRows } from '../support/store/stored-rows.ts'

const ofFile = relayOfFile(NO_CARRIER, { delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['1h'] } })
const openPage = browserOfFile()

/** In Stockholm the clocks are put ahead at the first instant, and back at the second one, from 03:00 to 02:00. */
const [PUT_AHEAD, PUT_BACK] = [Date.UTC(2026, 2, 29, 1), Date.UTC(2026, 9, 25, 1)]
const STOCKHOLM: Zone = { name: 'Europe/Stockholm', minutesAt: (atMs) => (PUT_AHEAD <= atMs && atMs < PUT_BACK ? 120 : 60) }
const ZONES: readonly Zone[] = [
  { name: 'Asia/Tokyo', minutesAt: () => 540 },
  { name: 'Asia/Kolkata', minutesAt: () => 330 },
  { name: 'America/Bogota', minutesAt: () => -300 },
  STOCKHOLM,
]
/** The instants around the hour from 2 to 3 that came twice, and around the one that did not come. */
const CHANGES = [PUT_AHEAD, PUT_BACK].flatMap((changeMs) => [-90, -30, 0, 30, 90].map((minutes) => changeMs + minutes * 60_000))
const PAGES_OF_A_KIND = 2

const logIn = (zone: Zone) => openLoggedIn(openPage, ofFile().internalUrl, { timezoneId: zone.name, locale: 'en-GB' })

let paths: readonly string[] = []

/** Makes the pages show times of each kind: of what came, was sent, failed, waits, was ordered and is to come. */
beforeAll(async () => {
  const { publicUrl, internalUrl, databasePath } = ofFile()
  const operate = await operatorOf(ofFile())
  const id = String((await operate('POST', '/relay/endpoints', { name: 'failing', url: 'http://127.0.0.1:9/hook' })).body.id)
  for (const nth of [1, 2, 3, 4, 5, 6]) expect((await push(publicUrl, pushBody({ trackingIds: [`100${nth}`] }))).status).toBe(200)
  for (const atMs of CHANGES)
    await push(publicUrl, pushBody({ trackingIds: ['2001'], detailedStatus: `At${atMs}`, eventTime: new Date(atMs).toISOString() }))
  await push(publicUrl, '{"format":"unknown"}')
  await push(publicUrl, pushBody({ trackingIds: ['3001'] }), { 'x-service-hmac-sha256': 'wrong' })
  const visitor = await loggedInAt(internalUrl)
  const page = (await visitor.get(`/webhooks/${id}`)).text
  expect((await visitor.post(`/webhooks/${id}/key`, { ...formIn(page, `/webhooks/${id}/key`), sharedKey: '' })).status).toBe(200)
  expect((await visitor.post('/jobs/rebuild', { do: 'rebuild', parcels: '2001' })).status).toBe(303)
  await eventually(async () => (await visitor.get(`/webhooks/${id}`)).text.includes('What it answered'))
  await changeStoredRows(
    databasePath,
    `update inbox set received_at_ms = ? + 1800000 * (select count(*) from inbox before where before.id < inbox.id) where id <= 6`,
    PUT_BACK - 90 * 60_000,
  )
  const all = [...(await crawl(visitor)).keys()]
  const kindOf = (path: string) => path.replace(/(?<=\/parcels\/)\w+/, 'N').replaceAll(/\d+/g, 'N')
  paths = all.filter((path, at) => all.slice(0, at).filter((one) => kindOf(one) === kindOf(path)).length < PAGES_OF_A_KIND)
  // The parcel of the changes, whichever parcels come first.
  paths = [...new Set([...paths, '/parcels/2001', '/parcels/2001?view=consumer'])]
})

describe.each(ZONES)('in $name', (zone) => {
  test('every time that a page shows is in the zone that the page names', async () => {
    expect(paths.length).toBeGreaterThan(25)
    const page = await logIn(zone)
    const wrong = new Set<string>()
    for (const path of paths) {
      await page.goto(path)
      for (const one of await timesInOtherZones(page, zone, Date.now())) wrong.add(one)
    }
    expect([...wrong]).toEqual([])
  })

  test('a time typed into a filter finds what the page shows at that time', async () => {
    const page = await logIn(zone)
    const received = await page.goto('/inbox?state=all').then(() => timesIn(page))
    expect(received.length).toBeGreaterThan(15)
    for (const atMs of received.slice(0, 2).concat(received.slice(-5))) {
      const { field } = clockIn(zone, atMs)
      await page.goto('/inbox?state=all')
      await page.getByLabel('From').fill(field)
      await page.getByLabel('To').fill(field)
      await page.getByRole('button', { name: 'Show', exact: true }).click()
      await page.waitForURL('**from=*')
      const shown = await timesIn(page)
      // What came between two times that are called alike is listed with them.
      const alike = received.filter((one) => clockIn(zone, one).field === field)
      const [first, last] = [Math.min(...alike), Math.max(...alike)]
      expect([field, shown]).toEqual([field, received.filter((one) => first <= one && one <= last)])
      expect([await page.getByLabel('From').inputValue(), await page.getByLabel('To').inputValue()]).toEqual([field, field])
    }
  })
})

test('the zone can be changed on the page, with what was typed into its fields', async () => {
  const page = await logIn(STOCKHOLM)
  await page.goto('/deliveries')
  await page.getByLabel('From').fill('2026-10-24T12:30')
  await page.getByRole('button', { name: 'change' }).click()
  expect(await page.getByLabel('From (UTC)').inputValue()).toBe('2026-10-24T10:30')
  await page.getByRole('button', { name: 'change' }).click()
  expect(await page.getByLabel('From').inputValue()).toBe('2026-10-24T12:30')
})

/** The instants in the list of a page. */
async function timesIn(page: Page): Promise<readonly number[]> {
  const rows = page.getByRole('table', { name: 'Pushes, newest first' }).locator('tbody td:nth-child(2) time')
  const instants = await Promise.all((await rows.all()).map((time) => time.getAttribute('datetime')))
  return instants.map((instant) => Date.parse(instant ?? ''))
}
