import { describe, expect, test } from 'vitest'
import { createReports } from '../../../src/insight/report/report.ts'
import { DAY_MS, HOUR_MS } from '../../support/runner/constants.ts'
import { engines } from '../../support/store/engines.ts'
import { openStore } from '../../support/store/write-side.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }

describe.each(engines)('the first day that the report counts, on $name', (engine) => {
  async function open(startMs: number, zone: string) {
    const store = await openStore(startMs, engine)
    const settings = { zone, retention: { reportsMs: 1830 * DAY_MS }, poll: { missedPushGraceMs: 0 } }
    const clock = { now: store.now, monotonic: () => 0 }
    const reports = createReports({ ...store, write: store.writes, clock, log, settings: () => settings })
    const scan = async () => void (await store.push({ eventTime: new Date(store.now()).toISOString(), trackingIds: [String(store.now())] }))
    const pushedIn = async (month: string | null) => {
      const { month: name, counts, countedFrom } = await reports.read(month)
      return [name, counts.pushed, countedFrom]
    }
    return { ...store, settings, reports, scan, pushedIn }
  }

  test('10.9: one that a clock ahead has set goes back with the clock, else no report was shown until then', async () => {
    const { reports, scan, pushedIn, setClock } = await open(Date.UTC(2099, 0, 5), 'UTC')
    await reports.fold()
    setClock(Date.UTC(2026, 9, 30))
    await scan()
    expect(await pushedIn(null)).toEqual(['2026-10', 1, '2026-10-30'])
    setClock(Date.UTC(2026, 10, 2))
    await scan()
    expect(await pushedIn('2026-10')).toEqual(['2026-10', 1, '2026-10-30'])
    expect(await pushedIn(null)).toEqual(['2026-11', 1, '2026-10-30'])
    await expect(reports.read('2026-09')).rejects.toMatchObject({ code: 'bad_request' })
  })

  test('10.9: one of a zone a day ahead goes back with the zone, also before anything is noted', async () => {
    const { reports, scan, pushedIn, settings, pass } = await open(Date.UTC(2026, 9, 31, 11), 'Pacific/Kiritimati')
    expect(await pushedIn(null)).toEqual(['2026-11', 0, '2026-11-01'])
    settings.zone = 'America/Adak'
    expect(await pushedIn(null)).toEqual(['2026-10', 0, '2026-10-31'])
    await scan()
    await reports.fold()
    pass(30 * HOUR_MS)
    expect(await pushedIn('2026-10')).toEqual(['2026-10', 1, '2026-10-31'])
  })
})
