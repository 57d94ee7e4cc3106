import { expect, test } from 'vitest'
import type { Past } from '../../../src/console/overview/overview.ts'
import { carrierPage } from '../../../src/console/portal/carrier/carrier.page.ts'
import { overviewPage } from '../../../src/console/portal/overview/overview.page.ts'
import type { Situation } from '../../../src/console/problems/verdict.ts'
import { WELL } from '../../support/portal/situation.ts'
import { visitAt, wordEvent } from '../../support/portal/visit.ts'
import { NOON } from '../../support/runner/constants.ts'

const MB = 1024 ** 2
const NO_TRAFFIC = { fromMs: [], pushes: [], missed: [], polls: [], attempts: [] }
const silent: Situation & Past = {
  ...WELL,
  pushes: {
    ...WELL.pushes,
    health: 'silent',
    lastPushAtMs: NOON - 3_600_000,
    missedSincePush: 7,
    missed: { count: 7, sinceMs: 0, lastFoundAtMs: null },
  },
  happened: [],
  traffic: { hours: NO_TRAFFIC, days: NO_TRAFFIC, calls: {}, disk: [] },
}

test.each(['', '/relay'])('if no pushes arrive, the overview links to the evidence, prefix %o', (prefix) => {
  expect(overviewPage(visitAt(prefix), silent, wordEvent)).toContain(`<a href="${prefix}/carrier#pushes" class="btn">Show the evidence</a>`)
  expect(carrierPage(visitAt(prefix), silent)).toContain('<h2 id="pushes">Pushes: the evidence</h2>')
})

test('the card about missing pushes names the expected path, and says what polls do not find', () => {
  const page = overviewPage(visitAt(''), { ...silent, webhook: { path: '/hooks/parcels', misdirected: [] } }, wordEvent)
  expect(page).toContain('Ask the carrier to what address it pushes, and what answers it gets.')
  expect(page).toContain('<code>POST https://YOUR-HOST/hooks/parcels</code>')
  expect(page).toContain('Polls find nothing about parcels that no push has named yet')
  expect(page).not.toContain('Nothing is lost')
})

test('if pushes arrive again, the page shows since when, and when the trial period ends', () => {
  const probation = { sinceMs: NOON - 600_000, untilMs: NOON + 1_200_000, pushes: 30 }
  const page = carrierPage(visitAt(''), { ...silent, pushes: { ...silent.pushes, health: 'lossy', probation } })
  expect(page).toContain('arriving again')
  expect(page).toMatch(/its pushes arrive again since .*11:50.*The relay watches them until .*12:20/s)
  expect(page).not.toContain('many are lost')
})

test('if pushes come but are not understood, the overview links to the inbox', () => {
  const held = [
    {
      reason: 'event_time',
      count: 14,
      first: { inboxId: 1, receivedAtMs: NOON - 60_000 },
      last: { inboxId: 14, receivedAtMs: NOON - 30_000 },
    },
  ]
  const situation = { ...silent, counts: { ...silent.counts, quarantined: 14 }, held }
  const page = overviewPage(visitAt(''), situation, wordEvent)
  expect(page).toContain('No push is understood')
  expect(page).toContain('eventTime is not a UTC time: 14, the last one')
  expect(page).not.toMatch(/DNS|No push for/)
  expect(page).toMatch(/If nothing more comes.*the pushes have stopped as well.*#pushes_silent/s)
  expect(carrierPage(visitAt(''), situation)).toContain('but the relay understands none of its pushes')
})

test('for a disk that fills up, the page shows its free space, its use, and when pushes stop', () => {
  const disk = { freeBytes: 300 * MB, freeBytesMin: 200 * MB, totalBytes: 40_000 * MB, storeBytes: 1200 * MB, path: '/data/relay.db' }
  const traffic = { ...silent.traffic, disk: [{ fromMs: NOON - 5 * 3_600_000, counts: { free: 500 * MB } }] }
  const page = overviewPage(visitAt(''), { ...silent, pushes: { ...silent.pushes, health: 'healthy' }, disk, traffic }, wordEvent)
  expect(page).toMatch(/300 MB are free on the store’s disk <small>pushes stop at about .*14:00/)
  expect(page).toContain(
    'On the disk of <code>/data/relay.db</code> 38.8 GB of 39.1 GB are used, 1.17 GB by the store: something else fills it.',
  )
  expect(page).toContain('/docs/runbooks#disk_low')
})

test('for a full disk, the page says that pushes are refused and polls stopped; nothing is green', () => {
  const disk = { freeBytes: 150 * MB, freeBytesMin: 200 * MB, totalBytes: 40_000 * MB, storeBytes: 39_000 * MB, path: '/data/relay.db' }
  const situation: Situation & Past = {
    ...silent,
    pushes: { ...silent.pushes, health: 'healthy' },
    notReady: ['disk_full: 5 MB are free where the store is, less than limits.freeSpaceMin'],
    disk,
  }
  const page = overviewPage(visitAt(''), situation, wordEvent)
  expect(page).toContain('The store’s disk is full: pushes are refused')
  expect(page).toMatch(/150 MB are free; the relay needs 200 MB\..*does not poll/s)
  expect(page).toMatch(/On the disk of <code>\/data\/relay\.db<\/code>.*38\.1 GB by the store\..*Free 50 MB or more on that disk/s)
  expect(page).toContain('/docs/runbooks#disk_full')
  expect(page).not.toMatch(/>arriving<|freeSpaceMin|something else/)
  for (const mark of ['refused', 'not polled', 'full']) expect(page).toContain(mark)
  const carrier = carrierPage(visitAt(''), situation)
  expect(carrier).toMatch(/refuses pushes and does not poll until it is/)
  expect(carrier).not.toMatch(/>arriving<|>answers</)
})

test('the lead under the headline fits the problem: the carrier, or pushes that are refused', () => {
  const breaker = { ...silent.carrier.breaker, state: 'open', failures: 5 } as const
  const failing: Situation & Past = { ...silent, pushes: { ...silent.pushes, health: 'healthy' }, carrier: { ...silent.carrier, breaker } }
  const page = overviewPage(visitAt(''), failing, wordEvent)
  expect(page).toContain('Pushes are still taken and sent on. What no push brings is found once the carrier can be asked again.')
  expect(page).not.toContain('Events that a webhook refuses wait for it')
  const notReady = ['disk_full: 5 MB are free where the store is, less than limits.freeSpaceMin']
  expect(overviewPage(visitAt(''), { ...failing, notReady }, wordEvent)).toContain('Pushes are answered with 503.')
})

test('without other problems, the headline says that the last call to the carrier failed', () => {
  const lastFailure = { reason: 'network', atMs: NOON - 40_000 } as const
  const carrier = { ...WELL.carrier, lastFailure, breaker: { state: 'closed', failures: 3, restMs: 0 } } as const
  const page = overviewPage(visitAt(''), { ...silent, pushes: WELL.pushes, carrier }, wordEvent)
  expect(page).toContain('Everything works, but the last call to the carrier failed</h1>')
  expect(page).toContain('failed 40 s ago: it could not be reached. It becomes a problem after 5 failures in a row; 3 so far.')
})
