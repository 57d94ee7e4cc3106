import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { charactersOf, html } from '../../src/console/portal/html.ts'
import { timeInLine, timeInTable } from '../../src/console/portal/times.ts'
import { browserOfFile } from '../support/portal/browser.ts'

const newPage = browserOfFile()

const NOW = Date.UTC(2026, 0, 2, 12)
const SUMMER = Date.UTC(2025, 6, 25, 12)
const WINTER = Date.UTC(2026, 0, 1, 12)

test('a time in another year shows the year', () => {
  expect(charactersOf(timeInTable(SUMMER, NOW))).toContain('>25 Jul 2025 12:00<')
  expect(charactersOf(timeInTable(WINTER, NOW))).toContain('>1 Jan 12:00<')
  expect(charactersOf(timeInLine(SUMMER, null, NOW))).toContain('>25 Jul 2025 12:00:00<')
})

test('in the zone of the viewer a time has the name that the zone had then', async () => {
  const page = await newPage({ timezoneId: 'Europe/Stockholm', locale: 'en-GB' })
  const body = charactersOf(html`<p class="zone">UTC</p>${timeInTable(SUMMER, NOW)}${timeInTable(WINTER, NOW)}`)
  const script = readFileSync('src/console/portal/assets/portal.js', 'utf8')
  await page.route('**/*', async (route) =>
    route.request().url().endsWith('.js')
      ? await route.fulfill({ contentType: 'text/javascript', body: script })
      : await route.fulfill({ contentType: 'text/html', body: `${body}<script src="/assets/portal.js" defer></script>` }),
  )
  await page.clock.setFixedTime(NOW)
  await page.goto('http://portal.test/')
  expect(await page.locator('.zone').textContent()).toBe('CET')
  expect(await page.locator('time').allTextContents()).toEqual(['25 Jul 2025 14:00 CEST', '1 Jan 13:00'])
})
