import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually } from '../faults/world.ts'
import { pushBody } from '../support/history/builders.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { browserOfFile } from '../support/portal/browser.ts'
import { openLoggedIn } from '../support/portal/portal-page.ts'
import { crawl } from '../support/portal/portal-pages.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfFile } from '../support/relay/relay-of-file.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'

const ofFile = relayOfFile(NO_CARRIER, { delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['1h'] } })
const openPage = browserOfFile()

/** A word as long as what others write into the relay may be. */
const long = (text: string, length = 4000) => text.padEnd(length, 'Wm')

// It runs in the page: what reaches beyond the window or is cut off, unless one can scroll to it or only screen readers read it.
const LOOK = `(() => {
  const width = document.documentElement.clientWidth
  const found = []
  const isScrolled = (element) => element.closest('.scroll, .wide') !== null
  if (document.documentElement.scrollWidth > width) found.push('the page: ' + document.documentElement.scrollWidth + ' px')
  for (const element of document.querySelectorAll('body *')) {
    if (element.closest('svg, .hide, .skip, thead, option, [popover]:not(:popover-open)') !== null || isScrolled(element)) continue
    const { left, right, width: own } = element.getBoundingClientRect()
    const { overflowX, textOverflow } = getComputedStyle(element)
    // What is typed into a field scrolls in it.
    const isField = element.matches('input, select')
    const isCut = textOverflow === 'ellipsis' || (/hidden|clip/.test(overflowX) && element.scrollWidth > element.clientWidth + 1)
    if (own > 0 && (right > width + 1 || left < -1 || (isCut && !isField)))
      found.push(element.tagName + '.' + element.className + ' ' + Math.round(left) + ' to ' + Math.round(right) + ': ' + element.textContent.trim().slice(0, 30))
  }
  return found
})()`

const receiver = startWebhookReceiver()
afterAll(async () => await (await receiver)[Symbol.asyncDispose]())

let paths: readonly string[] = []

beforeAll(async () => {
  const { publicUrl, internalUrl } = ofFile()
  const operate = await operatorOf(ofFile())
  const { url, answer } = await receiver
  answer(() => ({ status: 422, body: long('no') }))
  const endpoints = [
    { name: long('shop', 60), url: `${url}/${long('path', 1900)}`, headers: { [long('X-H', 60)]: long('value', 1000) } },
    { name: long('gone', 60), url: `http://127.0.0.1:9/${long('path', 1900)}`, filters: { detailedStatus: [long('Of', 60)] } },
  ]
  const added = await Promise.all(endpoints.map((endpoint) => operate('POST', '/relay/endpoints', endpoint)))
  expect(added.map(({ status, text }) => (status < 300 ? status : text))).toEqual([201, 201])
  const texts = { location: long('Place'), status: long('Status'), detailedStatus: long('Detailed'), distributionType: long('Kind') }
  const ids = ['1001', long('ID', 40)]
  const words = { texts: { en: long('Text') }, consumer: { en: long('Consumer') } }
  expect((await push(publicUrl, pushBody({ ...texts, ...words, trackingIds: ids }))).status).toBe(200)
  await push(publicUrl, pushBody({ trackingIds: ['1002'] }))
  await push(publicUrl, pushBody({ trackingIds: [long('no id')], status: long('Status'), eventTime: long('never') }))
  await push(publicUrl, pushBody({ trackingIds: ['1003'], eventTime: long('never') }))
  await push(publicUrl, `{"status":"${long('Status')}"`)
  await push(publicUrl, '{}', { 'x-service-hmac-sha256': long('wrong', 1000), 'content-type': long('type', 1000) })
  const visitor = await loggedInAt(internalUrl)
  await eventually(async () => (await visitor.get(`/webhooks/${String(added[0]?.body.id)}`)).text.includes('What it answered'))
  paths = [
    ...(await crawl(visitor)).keys(),
    `/parcels?query=${long('Q', 200)}`,
    `/deliveries?parcel=${long('Q', 200)}`,
    `/inbox?parcel=${long('Q', 200)}`,
    `/${long('nowhere', 1000)}`,
  ]
})

test.each([390, 1280])('on a screen of %i px no long word is cut off or makes a page wider', async (width) => {
  const page = await openLoggedIn(openPage, ofFile().internalUrl, { viewport: { width, height: 844 } })
  const found: string[] = []
  for (const path of paths) {
    await page.goto(path)
    await page.waitForLoadState('load')
    await page.evaluate('for (const one of document.querySelectorAll("details")) one.open = true')
    found.push(...(await page.evaluate<readonly string[]>(LOOK)).map((one) => `${path.slice(0, 60)} ${one}`))
  }
  expect(found).toEqual([])
})
