import { expect, test } from 'vitest'
import type { ClockDoubt } from '../../../src/core/domain/admin/clock-record.ts'
import { retentionPages } from '../../../src/upkeep/retention/retention.page.ts'
import { WELL } from '../../support/portal/situation.ts'
import { visitAt } from '../../support/portal/visit.ts'

const NONE = { count: 0, isMore: false }
const RETENTION = { rawMs: 1, historyMs: 1, deliveriesMs: 1, feedMs: 1, auditMs: 1, reportsMs: 1, heldMs: 1 }

/** The page of retention of a relay with this doubt. An order to start a pass is rejected with the word "started". */
function pageWith(clockDoubt: ClockDoubt | null) {
  const [show, start] = retentionPages({
    overview: { glance: async () => ({ ...WELL, clockDoubt }) },
    manageRetention: {
      view: async () => ({ retention: RETENTION, pass: null, last: null }),
      wouldGo: async () => ({
        overdue: NONE,
        deliveries: NONE,
        pushBytes: NONE,
        answerBytes: NONE,
        parcels: NONE,
        unrecorded: NONE,
        feed: NONE,
      }),
      start: () => Promise.reject(new Error('started')),
    },
  })
  const visitWith = (clock: string) => ({ ...visitAt(''), form: { get: () => clock, all: () => [], entries: () => [], file: null } })
  return { show: async () => await show?.answer(visitAt('')), start: async (clock = '') => await start?.answer(visitWith(clock)) }
}

test('a pass of retention is started at once while nothing speaks against the clock', async () => {
  await expect(pageWith(null).start()).rejects.toThrow('started')
})

test('a pass is started while the clock is doubted only by who says that the clock is right', async () => {
  const page = pageWith({ because: 'jumped', aheadMs: 400 * 86_400_000 })
  expect(await page.show()).toMatchObject({ status: 200, page: expect.stringContaining('It went 400 d ahead at once') })
  expect(await page.start()).toMatchObject({ status: 409, page: expect.stringContaining('Nothing was started.') })
  await expect(page.start('right')).rejects.toThrow('started')
})

test('no pass can be started while the carrier’s clock contradicts ours', async () => {
  const { show } = pageWith({ because: 'carrier', aheadMs: 86_400_000 })
  expect(await show()).toMatchObject({ page: expect.stringContaining('A pass would remove nothing until the clocks agree.') })
  expect(await show()).toMatchObject({ page: expect.not.stringContaining('Start a pass now') })
})
