import { expect, test } from 'vitest'
import { presentBreaches } from '../../../src/insight/watchdogs/watchdogs.command.ts'

const DAY_MS = 86_400_000
const NOW = Date.UTC(2026, 9, 20)

test('a breach that is over was stalled until then, not until now', () => {
  const breach = {
    id: '1',
    rule: 'no-scan',
    why: null,
    parcel: { id: '1', identifiers: ['AB123456789SE'] },
    reference: 'ORDER-1',
    since: new Date(NOW - 9 * DAY_MS).toISOString(),
    checked: true,
    toldAt: new Date(NOW - 9 * DAY_MS).toISOString(),
    endedAt: null,
  }
  const ended = { ...breach, id: '2', endedAt: new Date(NOW - 7 * DAY_MS).toISOString() }
  const [head = '', lasting = '', over = ''] = presentBreaches([breach, ended], NOW).split('\n')
  const cell = (row: string) => row.slice(head.indexOf('STALLED FOR')).split(/ {2,}/)[0]
  expect([cell(lasting), cell(over)]).toEqual(['9 d', '2 d'])
  expect(over).toMatch(/7 d ago$/)
})
