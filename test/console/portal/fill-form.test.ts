import { expect, test } from 'vitest'
import { type FormField, fillForm } from '../../../src/console/portal/form.ts'
import { html } from '../../../src/console/portal/html.ts'

const FORMS = 40
const page = `<main id="main">${Array.from({ length: FORMS }, (_, nth) => `<form method="post" action="/inbox"><input type="hidden" name="reason" value="r${nth}"><input name="note" value=""></form>`).join('\n')}</main>`
const fieldsOf = (count: number): readonly FormField[] => [
  ...Array.from({ length: count }, (_, nth) => [`field${nth}`, ['x']] as const),
  ['note', ['typed']],
  ['reason', ['r7']],
]
const fill = (fields: readonly FormField[]) => fillForm(page, { path: '/inbox', fields, note: html`<p>Nothing was done.</p>`, errors: {} })

test('of several forms at one address, the one with the hidden values that were sent is filled', () => {
  expect(fill(fieldsOf(0))).toBe(
    page.replace(
      '<input type="hidden" name="reason" value="r7"><input name="note" value="">',
      '<p>Nothing was done.</p><input type="hidden" name="reason" value="r7"><input name="note" value="typed">',
    ),
  )
})

test('a form of 2,000 fields that no page has is filled in about the time of one with few', () => {
  const [few, many] = [fieldsOf(2), fieldsOf(2000)]
  expect(fill(many)).toBe(fill(few))
  const timeOf = (fields: readonly FormField[]) => {
    const times = Array.from({ length: 7 }, () => {
      const before = process.cpuUsage()
      for (let runs = 0; runs < 5; runs++) fill(fields)
      const { user, system } = process.cpuUsage(before)
      return user + system
    })
    return Math.min(...times)
  }
  expect(timeOf(many) / Math.max(1, timeOf(few))).toBeLessThan(100)
})
