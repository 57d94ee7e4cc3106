import AxeBuilder from 'axe-core'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { ADMIN } from '../relay/relay.ts'

type OpenPage = (options: BrowserContextOptions) => Promise<Page>

/** Opens the portal and logs in. */
export async function logInOn(page: Page): Promise<void> {
  await page.goto('/')
  await page.getByLabel('User name').fill(ADMIN.username)
  await page.getByLabel('Password').fill(ADMIN.password)
  await page.getByRole('button', { name: 'Log in' }).click()
}

/** Opens a page of a relay's portal that is logged in, and closes it after the test. */
export async function openLoggedIn(open: OpenPage, baseURL: string, options: BrowserContextOptions = {}): Promise<Page> {
  const page = await open({ baseURL, ...options })
  onTestFinished(() => page.context().close())
  await logInOn(page)
  return page
}

/** Lists a page's serious barriers for people with disabilities, and says if it is wider than its screen. Open the page with `bypassCSP`. */
export async function barriersOn(page: Page): Promise<readonly string[]> {
  await page.evaluate(AxeBuilder.source)
  const found: unknown = await page.evaluate('axe.run({ resultTypes: ["violations"] }).then(({ violations }) => violations)')
  // Wait for the style sheet, without which a page may have any width.
  await page.waitForLoadState('load')
  const surplus = await page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth')
  const barriers = (Array.isArray(found) ? found : [])
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${page.url()} ${id}: ${nodes[0]?.html}`)
  return surplus > 0 ? [...barriers, `${page.url()} is ${surplus} px wider than the screen`] : barriers
}

/** The settings of the browser in which pages are tested, by name. */
export const LOOKS = [
  ['light', { colorScheme: 'light' }],
  ['dark', { colorScheme: 'dark' }],
  ['390 px wide', { viewport: { width: 390, height: 844 } }],
] as const
