import { expect, test } from 'vitest'
import { bars, budgetBar, trafficSection } from '../../../src/console/portal/charts.ts'
import { charactersOf } from '../../../src/console/portal/html.ts'
import { NOON } from '../../support/runner/constants.ts'

test('the highest bar fills the drawing, and a stacked bar begins where the one below ends', () => {
  const drawn = charactersOf(bars({ values: [12, 0, 6], over: [12, 0, 0], summary: 'three hours' }))
  expect(drawn).toContain('d="M0 24v-12h4V24zM10 24v-6h4V24z"')
  expect(drawn).toContain('class="c-bad" d="M0 12v-12h4V12z"')
  expect(drawn).toContain('viewBox="0 0 14 24"')
})

test('a small count is drawn as a visible bar, and a count of 0 as nothing', () => {
  expect(charactersOf(bars({ values: [100_000, 1, 0], summary: '' }))).toContain('d="M0 24v-24h4V24zM5 24v-0.8h4V24z"')
})

test('the parts of a budget are drawn one after another', () => {
  const drawn = charactersOf(budgetBar([250, 0, 250], { of: 1000, share: 0.5, summary: '500 of 1,000 "calls"' }))
  expect(drawn).toContain('<rect class="c-p0" x="0" width="250" height="12"/><rect class="c-p2" x="250" width="250" height="12"/>')
  expect(drawn).toContain('d="M500 -3V15"')
  expect(drawn).toContain('aria-label="500 of 1,000 &quot;calls&quot;"')
})

test('the overview counts refused pushes apart from those taken, so that no word means two counts', () => {
  const pushes = { recorded: 3, duplicate: 1, quarantined: 1, expired: 1, storage_unavailable: 7, signature_invalid: 9, check: 2 }
  const series = { fromMs: [NOON], pushes: [pushes], missed: [{}], polls: [{}], attempts: [{}] }
  const text = charactersOf(trafficSection({ hours: series, days: series, calls: {}, disk: [] })).replaceAll(/<[^>]+>/g, '|')
  expect(text).toMatch(/Pushes taken \|red: authentic, answered with 503\|+6\|+6\|/)
  expect(text).toMatch(/Pushes taken\|+Refused \(503\)\|/)
  expect(text).not.toContain('received')
})
