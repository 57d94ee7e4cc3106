import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { renderSheet } from '../../../src/insight/report/report-sheet.ts'
import { someReport } from '../../support/insight/some-report.ts'
import { browserOfFile } from '../../support/portal/browser.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'

const openPage = browserOfFile()

test.each([
  ['nothing happened', 0],
  ['an ordinary month', 1],
  ['every list is too long and every number huge', 987_654],
])('the report prints on two A4 sheets, without script and without anything from elsewhere: %s', async (name, size) => {
  const text = renderSheet(someReport(size), { portal: 'https://relay.example.com/portal', nowMs: Date.UTC(2026, 10, 30) })
  expect(text).not.toMatch(/<script|javascript:|\son\w+=|<link|@import|url\(/i)
  const page = await openPage({ javaScriptEnabled: false })
  const asked: string[] = []
  page.on('request', (request) => void asked.push(request.url()))
  const file = join(temporaryFolder(), 'report.html')
  writeFileSync(file, text)
  await page.goto(`file://${file}`)
  const pdf = await page.pdf({ preferCSSPageSize: true })
  const shown = process.env.SHEETS
  if (shown !== undefined) {
    // To look at.
    mkdirSync(shown, { recursive: true })
    await page.setViewportSize({ width: 688, height: 1032 })
    await page.emulateMedia({ media: 'print' })
    await page.screenshot({ path: join(shown, `${name}.png`), fullPage: true })
  }
  expect(pdf.toString('latin1').match(/\/Type\s*\/Page\b(?!s)/g)).toHaveLength(2)
  expect(asked).toEqual([`file://${file}`])
})
