import { describe, expect, test } from 'vitest'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { createReports } from '../../../../src/insight/report/report.ts'
import { recordOptions, retention } from '../../../support/history/policy.ts'
import { DAY_MS } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { DIRECTIONS, moveStore, placeOf } from '../../../support/store/moving.ts'
import { storedNumber } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

const START = Date.UTC(2026, 9, 10, 12)

async function openReport(engine: Engine, place: string | null = null, reportsMs = 1830 * DAY_MS) {
  const store = await openStore(START, engine, place)
  const settings = () => ({ zone: 'UTC', retention: { reportsMs }, poll: { missedPushGraceMs: 0 } })
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const reports = createReports({ ...store, write: store.writes, clock: { now: store.now, monotonic: () => 0 }, log, settings })
  const late = (id: string) =>
    store.push({ trackingIds: [id], eventTime: new Date(store.now() - recordOptions.missedPushGraceMs - 1000).toISOString() })
  return { ...store, reports, late }
}

describe.each(engines)('days of the report on $name', (engine) => {
  test('are removed with their evidence after `retention.reports`, and no earlier', async () => {
    const { writes, reports, late, pass, path, now } = await openReport(engine, null, 3 * DAY_MS)
    await writes.adjustRetention({ ...retention, reportsMs: 3 * DAY_MS })
    for (let day = 0; day < 8; day++) {
      await late(`${2000 + day}`)
      await reports.fold()
      pass(DAY_MS)
      while (!(await writes.prune({ nowMs: now() })).isDone);
    }
    const kept = "from report_evidence where name = 'late'"
    expect(await storedNumber(path, `select count(*) ${kept}`)).toBe(4)
    expect(await storedNumber(path, `select min(day) ${kept}`)).toBe(Date.UTC(2026, 9, 14))
    expect(await storedNumber(path, "select count(*) from tally where span = 'report'")).toBe(4)
    const { days } = await reports.read(null)
    expect(days.map(({ counts }) => counts.late).slice(9)).toEqual([0, 0, 0, 0, 1, 1, 1, 1, 0])
    pass(40 * DAY_MS)
    await expect(reports.read('2026-10')).rejects.toThrow('The report of 2026-10 was removed: retention.reports keeps no day before')
  })
})

test.each(DIRECTIONS)('a move from $name carries the report, what is not added up yet included', async ({ from, to }) => {
  const [old, next] = [await placeOf(from), await placeOf(to)]
  const before = await openReport(from, old.place)
  await before.late('2001')
  await before.reports.fold()
  await before.late('2002')
  await before.writes.close()
  await moveStore(old, next)
  const after = await openReport(to, next.place)
  await after.late('2003')
  const { counts, evidence } = await after.reports.read('2026-10')
  expect(counts).toMatchObject({ pushed: 3, late: 3 })
  expect(evidence.find(({ name }) => name === 'late')?.ids).toHaveLength(3)
})
