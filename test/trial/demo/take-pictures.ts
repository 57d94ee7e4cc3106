import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, statSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Locator, Page } from 'playwright-core'
import { ADMIN } from '../../../src/trial/demo/apps.ts'
import { startBrowser } from '../../support/portal/browser.ts'
import { ownGroup, tieToTest } from '../../support/runner/tied-process.ts'

// `npm run pictures` makes the pictures of the portal in the README, from a demo whose histories are complete.

const FOLDER = 'docs/images'
const WIDTH = 1200
/** How many entries the picture of a history shows. */
const ROWS = 5

/** Runs the demo until its histories are complete. Returns the address of its portal. */
async function startDemo() {
  const demo = tieToTest(spawn(process.execPath, ['src/main.ts', 'demo'], { ...ownGroup, stdio: ['ignore', 'pipe', 'inherit'] }))
  let url = ''
  for await (const line of createInterface(demo.stdout)) {
    url = /relay, internal +(\S+)/.exec(line)?.[1] ?? url
    if (line.includes('histories are complete')) break
  }
  // Discard the rest of the demo's output, so that the pipe does not fill up.
  demo.stdout.resume()
  return { url, demo }
}

/** Finds the first parcel whose latest entries came partly by push and partly by poll. */
async function findParcelOfBothDoors(page: Page): Promise<string> {
  await page.goto('/parcels?stopped=delivered')
  const paths = await page.getByRole('table', { name: 'Parcels' }).getByRole('link').all()
  for (const path of await Promise.all(paths.map((link) => link.getAttribute('href')))) {
    await page.goto(path ?? '')
    const text = (await historyOf(page).getByRole('row').allTextContents()).slice(0, ROWS + 1).join(' ')
    if (text.includes('no push came') && text.includes('a poll agreed')) return path ?? ''
  }
  throw new Error('no parcel has recent entries from both pushes and polls')
}

const historyOf = (page: Page) => page.getByRole('table', { name: 'History, newest first' })

/** Takes a picture of a page down to the element `last`. */
async function take(page: Page, path: string, name: string, last: Locator): Promise<void> {
  await page.goto(path)
  await page.getByText('Changes show by themselves').waitFor()
  const { y = 0, height = 0 } = (await last.boundingBox()) ?? {}
  await page.setViewportSize({ width: WIDTH, height: Math.ceil(y + height) })
  const file = `${FOLDER}/${name}.png`
  await page.screenshot({ path: file })
  process.stdout.write(`${file}: ${Math.ceil(statSync(file).size / 1024)} kB\n`)
}

mkdirSync(FOLDER, { recursive: true })
const { url, demo } = await startDemo()
const browser = await startBrowser()
const page = await browser.newPage({ baseURL: url, viewport: { width: WIDTH, height: 900 } })
await page.goto('/')
await page.getByLabel('User name').fill(ADMIN.username)
await page.getByLabel('Password').fill(ADMIN.password)
await page.getByRole('button', { name: 'Log in' }).click()
await take(page, '/', 'overview', page.getByRole('table', { name: 'Checks' }))
await take(page, await findParcelOfBothDoors(page), 'parcel', historyOf(page).getByRole('row').nth(ROWS))
await browser.close()
const ended = once(demo, 'exit')
demo.kill('SIGINT')
await ended
