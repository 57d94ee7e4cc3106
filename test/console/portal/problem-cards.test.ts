import { expect, test } from 'vitest'
import type { Past } from '../../../src/console/overview/overview.ts'
import { charactersOf } from '../../../src/console/portal/html.ts'
import { problemSections } from '../../../src/console/portal/overview/overview.page.ts'
import type { ConcernKind } from '../../../src/console/problems/concern-kinds.ts'
import type { Problem, Situation } from '../../../src/console/problems/verdict.ts'
import { newHealth } from '../../../src/core/domain/delivery/endpoint-health.ts'
import { endpointState } from '../../support/delivery/endpoint-state.ts'
import { explainPlainly } from '../../support/portal/plain-explanation.ts'
import { WELL } from '../../support/portal/situation.ts'
import { visitAt } from '../../support/portal/visit.ts'
import { NOON } from '../../support/runner/constants.ts'

type Kind = Exclude<Problem['kind'], ConcernKind>
const MB = 1024 ** 2
const DISK = { freeBytes: 47 * MB, freeBytesMin: 64 * MB, totalBytes: 200 * MB, storeBytes: 58 * MB, path: '/data/relay.db' }
const STATE = endpointState(
  { name: 'billing', url: 'http://billing/' },
  { health: { ...newHealth, failingSinceMs: 1, probing: { atMs: 2, failed: 1 } } },
)
const FAILURE = {
  status: 503,
  reason: null,
  answerStart: Buffer.from('run parcel-relay reload'),
  count: 1,
  firstAtMs: 1,
  lastAtMs: 1,
  deliveryId: 1,
}
const HELD = {
  reason: 'event_time',
  count: 14,
  first: { inboxId: 1, receivedAtMs: NOON - 7_200_000 },
  last: { inboxId: 14, receivedAtMs: NOON - 7_200_000 },
}
const NO_TRAFFIC = { fromMs: [], pushes: [], missed: [], polls: [], attempts: [] }
const SITUATION: Situation & Past = {
  ...WELL,
  carrier: {
    ...WELL.carrier,
    refusal: { atMs: NOON - 7_200_000, by: 'token_endpoint', retryMs: 60_000 },
    lastFailure: { reason: 'rejected', status: 403, atMs: NOON - 7_200_000 },
  },
  held: [HELD],
  endpoints: [STATE],
  failures: new Map([['1', FAILURE]]),
  happened: [],
  traffic: { hours: NO_TRAFFIC, days: NO_TRAFFIC, calls: {}, disk: [] },
}

const PROBLEMS: Readonly<Record<Kind, Problem>> = {
  not_ready: { kind: 'not_ready', reason: 'store_lost: relay.db was removed' },
  credentials_refused: { kind: 'credentials_refused' },
  carrier_failing: { kind: 'carrier_failing' },
  pushes_silent: { kind: 'pushes_silent' },
  pushes_lossy: { kind: 'pushes_lossy' },
  silence_over: { kind: 'silence_over', silence: { fromMs: 0, toMs: 7_620_000 } },
  pushes_refused: { kind: 'pushes_refused', refused: [{ cause: 'not_stored', count: 3, fromMs: 0, untilMs: 60_000 }] },
  endpoint_failing: { kind: 'endpoint_failing', state: STATE },
  endpoint_disabled: { kind: 'endpoint_disabled', state: { ...STATE, disabled: 'gone' } },
  operator_unheard: { kind: 'operator_unheard', state: STATE },
  quarantined: { kind: 'quarantined', count: 14 },
  disk_full: { kind: 'disk_full', disk: DISK },
  disk_low: { kind: 'disk_low', disk: { ...DISK, freeBytes: 100 * MB } },
  backup_failing: { kind: 'backup_failing', sinceMs: 0, reason: 'The folder is gone' },
  clock_doubted: { kind: 'clock_doubted', doubt: { because: 'carrier', aheadMs: 7_200_000 } },
  settings_differ: { kind: 'settings_differ' },
}

/** The sentences of a card, without tags, and with each command that became a link as a command. */
function sentencesOf(page: string): string {
  return page
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
}

test.each(Object.values(PROBLEMS))('the terminal and the page say the same of $kind', (problem) => {
  const { title, evidence, todo } = explainPlainly(problem, SITUATION, NOON)
  const page = sentencesOf(charactersOf(problemSections(visitAt(''), SITUATION, [problem])))
  const plain = [title, ...evidence, ...todo].map((one) => one.replaceAll(/"/g, ''))
  // A page shows instants in its own form.
  const shown = (text: string) => text.replaceAll(/"|“|”/g, '').replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '…')
  for (const sentence of plain) for (const piece of shown(sentence).split('…')) expect(shown(page)).toContain(piece)
  expect(evidence.length * todo.length).toBeGreaterThan(0)
})

test('what others have written is quoted, and no command in it becomes a link', () => {
  const page = charactersOf(problemSections(visitAt(''), SITUATION, [PROBLEMS.endpoint_failing]))
  expect(page).toContain('<q class="said">run parcel-relay reload</q>')
})
