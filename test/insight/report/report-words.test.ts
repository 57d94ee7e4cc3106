import { expect, test } from 'vitest'
import { changesText, evidenceNote, latenessText, monthTitle, reportCsv, shareText } from '../../../src/insight/report/report-words.ts'
import { someReport } from '../../support/insight/some-report.ts'

test('the CSV has a line of the month and of each day for a count, with what proves it', () => {
  const lines = reportCsv(someReport(1)).split('\n')
  expect(lines[0]).toBe('count,day,value,evidence,note')
  const { counts } = someReport(1)
  expect(lines).toContain(
    `lost,,${counts.lost},4000 4001,3 more; 2 removed by retention or an erasure; 1 not kept (the first 20 of a day are)`,
  )
  expect(lines).toContain('pushed,2026-10-31,1110,,')
  expect(lines).toContain('p95Ms,,94000,,')
  expect(lines).toContain('outage,2026-10-02T00:00:00.000Z,2026-10-02T00:40:00.000Z,,')
  expect(lines.at(-1)).toBe('')
})

test('the words of a report say what they count', () => {
  expect(monthTitle('2026-02')).toBe('February 2026')
  expect([shareText(1, 0), shareText(1, 3), shareText(1, 1000), shareText(0, 5), shareText(-1, 5)]).toEqual([
    '—',
    '33.3 %',
    '0.10 %',
    '0.0 %',
    '0.0 %',
  ])
  expect([latenessText(850.4), latenessText(9400), latenessText(3_600_000)]).toEqual(['850 ms', '9.4 s', '1 h'])
  expect(changesText({ lost: -2, late: 2, pushed: 0 })).toBe('late +2, lost −2')
  expect(evidenceNote({ more: 0, removed: 0, unkept: 0 })).toBe('')
})
