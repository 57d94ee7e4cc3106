import AxeBuilder from 'axe-core'
import type { Page } from 'playwright-core'
import { ADMIN } from './relay.ts'

/** Logs in on the page that a browser was led to. */
export async function logInOn(page: Page): Promise<void> {
  await page.goto('/')
  await page.getByLabel('User name').fill(ADMIN.username)
  await page.getByLabel('Password').fill(ADMIN.password)
  await page.getByRole('button', { name: 'Log in' }).click()
}

/** What on a page is a serious barrier for somebody. The page must be open with `bypassCSP`. */
export async function barriersOn(page: Page): Promise<readonly string[]> {
  await page.evaluate(AxeBuilder.source)
  const found: unknown = await page.evaluate('axe.run({ resultTypes: ["violations"] }).then(({ violations }) => violations)')
  return (Array.isArray(found) ? found : [])
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${page.url()} ${id}: ${nodes[0]?.html}`)
}

/** How pages are looked at, by name. */
export const LOOKS = [
  ['light', { colorScheme: 'light' }],
  ['dark', { colorScheme: 'dark' }],
  ['390 px wide', { viewport: { width: 390, height: 844 } }],
] as const
