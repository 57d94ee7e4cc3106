import { expect, test } from 'vitest'
import { createMissedPushLog } from '../../../../src/core/flow/polling/poller.ts'
import { createLogBook } from '../../../support/runner/log-book.ts'

test('missed pushes are logged once a minute, with their number and up to five identifiers', () => {
  let nowMs = 0
  const { log, lines } = createLogBook()
  const tell = createMissedPushLog({ log, clock: { monotonic: () => nowMs } })
  const missed = (at: number) => ({ parcelId: at, identifier: `MP00${at}SE`, eventAtMs: 0, foundAtMs: at * 1000 })
  tell([missed(1)])
  for (let at = 2; at < 400; at++) {
    nowMs += 100
    tell([missed(at)])
  }
  expect(lines.map(({ fields }) => fields)).toEqual([{ count: 1, identifiers: ['MP001SE'], latestMs: 1000 }])
  nowMs += 60_000
  tell([])
  tell([])
  expect(lines.map(({ fields }) => fields).slice(1)).toEqual([
    { count: 398, identifiers: ['MP00399SE', 'MP00398SE', 'MP00397SE', 'MP00396SE', 'MP00395SE'], latestMs: 399_000 },
  ])
})
