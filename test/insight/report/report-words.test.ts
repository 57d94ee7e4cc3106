import { expect, test } from 'vitest'
import {
  changesText,
  countMeaning,
  evidenceNote,
  latenessText,
  monthTitle,
  outageText,
  reportCsv,
  shareText,
} from '../../../src/insight/report/report-words.ts'
import { someReport } from '../../support/insight/some-report.ts'

test('the CSV has a line of the month and of each day for a count, with what proves it', () => {
  const lines = reportCsv(someReport(1)).split('\n')
  expect(lines[0]).toBe('count,day,value,evidence,note')
  const { counts } = someReport(1)
  expect(lines).toContain(
    `lost,,${counts.lost},parcel:4000 parcel:4001,3 more; 2 removed by retention or an erasure; 1 not kept (the first 20 of a day are)`,
  )
  expect(lines.find((line) => line.startsWith('late,,'))).toContain(',inbox:4000 inbox:4001,')
  expect(lines.slice(1, 7)).toEqual([
    'month,,2026-10,,',
    'zone,,America/Argentina/ComodRivadavia,,',
    'state,,closed,,',
    'closesOn,,2026-11-15,,',
    'countedFrom,,2026-01-01,,',
    'graceMs,,3000,,',
  ])
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
  expect(countMeaning('late', { graceMs: 3000 })).toBe('of these: more than 3 s after the event, or after they had counted as lost')
  expect(evidenceNote({ more: 0, removed: 0, unkept: 0 })).toBe('')
})

test('an outage counts for as long as it lasted within the days of the month in the zone', () => {
  const said = (zone: string, from: string, until: string | null) =>
    outageText({ month: '2026-10', zone, outages: [{ from, until }] }, Date.UTC(2026, 11, 24))
  expect(said('UTC', '2026-09-25T00:00:00.000Z', '2026-10-01T02:00:00.000Z')).toBe('1 outage, 2 h in all')
  expect(said('Europe/Stockholm', '2026-09-25T00:00:00.000Z', '2026-10-01T02:00:00.000Z')).toBe('1 outage, 4 h in all')
  expect(said('UTC', '2026-10-31T21:00:00.000Z', null)).toBe('1 outage, 3 h in all')
  expect(outageText({ month: '2026-10', zone: 'UTC', outages: [] }, 0)).toBe('none')
})
