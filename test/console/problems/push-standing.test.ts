import { describe, expect, test } from 'vitest'
import { type PushStanding, pushEvidence, pushStanding } from '../../../src/console/problems/verdict.ts'
import { plainText } from '../../../src/console/problems/words.ts'
import type { PushChannelView } from '../../../src/core/domain/polling/poll.ts'
import { WELL } from '../../support/portal/situation.ts'
import { MINUTE_MS } from '../../support/runner/constants.ts'

const NOW = Date.UTC(2026, 2, 2, 2, 20)
const came = { ...WELL.pushes, lastPushAtMs: NOW - 3 * MINUTE_MS }
const LAST = 'The last push with news came 3 min ago.'
const trial = { sinceMs: Date.UTC(2026, 2, 2, 2, 13), untilMs: Date.UTC(2026, 2, 2, 2, 24), pushes: 60 }

describe.each([
  ['no push', { health: 'unknown', lastPushAtMs: null }, 'none', 'No push with news has come yet.'],
  [
    'pushes that came within the grace',
    { health: 'unknown', probation: trial },
    'too_early',
    `${LAST} It is too early to tell whether pushes are lost until 2026-03-02T02:24:00.000Z.`,
  ],
  [
    'pushes after which no poll brought a history: a 404 is an answer, and shows no loss',
    { health: 'unknown', probation: { ...trial, untilMs: null } },
    'too_early',
    `${LAST} It is too early to tell whether pushes are lost: no poll has brought a history since 2026-03-02T02:13:00.000Z.`,
  ],
  [
    'too few pushes',
    { health: 'unknown', probation: { ...trial, untilMs: NOW, pushes: 7 } },
    'too_early',
    `${LAST} Too few have come to tell whether any are lost: 7 since 2026-03-02T02:13:00.000Z, and 20 are needed.`,
  ],
  [
    'enough pushes, not judged yet at the end of their trial',
    { health: 'unknown', probation: { ...trial, untilMs: NOW } },
    'too_early',
    `${LAST} Enough have come to tell whether any are lost: the relay is about to judge them.`,
  ],
  ['healthy pushes', {}, 'healthy', LAST],
  [
    'healthy pushes of which a few were lost long ago',
    { loss: 0.009, missed: { count: 3, sinceMs: 0, lastFoundAtMs: 1 } },
    'healthy',
    LAST,
  ],
  ['healthy pushes of which none was lost, soon after the first', { loss: 0.025 }, 'healthy', LAST],
  [
    'healthy pushes of which some are lost',
    { loss: 0.092, missed: { count: 121, sinceMs: 0, lastFoundAtMs: NOW } },
    'healthy',
    `${LAST} By estimate, 9 % are lost, and polls find their entries; above 12 % pushes count as lossy.`,
  ],
  [
    'pushes before a restore',
    { restoredAtMs: NOW - MINUTE_MS },
    'healthy',
    'No push with news has come since the restore 1 min ago; the last one in the backup came 3 min ago.',
  ],
  [
    'no push in a restored backup',
    { health: 'unknown', lastPushAtMs: null, restoredAtMs: NOW - MINUTE_MS },
    'none',
    'No push with news has come since the restore 1 min ago; the backup holds none.',
  ],
  [
    'pushes that were silent in a restored backup',
    { health: 'silent', missedSincePush: 7, restoredAtMs: NOW - MINUTE_MS },
    'silent',
    'No push has come for 1 min; 7 entries were found by polls alone.',
  ],
  [
    'healthy pushes, one of them in quarantine',
    { newest: { count: 20, misread: 1, areTooMany: false, misreadAtMs: NOW - 5000 } },
    'healthy',
    `${LAST} Of the newest 20 pushes, 1 went into quarantine, the last one 5 s ago.`,
  ],
  [
    'pushes that recover without a silence',
    { health: 'lossy', probation: trial },
    'resumed',
    'By estimate, too many pushes were lost or not understood. The estimate fell at 2026-03-02T02:13:00.000Z; the cause may have ended long before. The relay watches them until 2026-03-02T02:24:00.000Z, and then trusts them if few are lost.',
  ],
  [
    'pushes that recover from losses',
    { health: 'lossy', probation: trial, missed: { count: 40, sinceMs: 0, lastFoundAtMs: Date.UTC(2026, 2, 2, 0, 9) } },
    'resumed',
    'By estimate, too many pushes were lost or not understood. The estimate fell at 2026-03-02T02:13:00.000Z; the cause may have ended long before. The last lost push was counted at 2026-03-02T00:09:00.000Z. The relay watches them until 2026-03-02T02:24:00.000Z, and then trusts them if few are lost.',
  ],
  ['lost pushes', { health: 'lossy', loss: 0.2 }, 'lossy', `${LAST} By estimate, 20 % are lost.`],
  [
    'pushes that are not understood',
    { newest: { count: 9, misread: 9, areTooMany: true, misreadAtMs: NOW - 5000 }, lastPushAtMs: null },
    'not_understood',
    'Of the newest 9 pushes, 9 went into quarantine, the last one 5 s ago.',
  ],
  ['silent pushes', { health: 'silent', missedSincePush: 7 }, 'silent', 'No push has come for 3 min; 7 entries were found by polls alone.'],
] satisfies readonly (readonly [string, Partial<PushChannelView>, PushStanding, string])[])('%s', (_what, change, standing, evidence) => {
  test('are described by what can be known about them', () => {
    const view = { ...came, ...change }
    expect([pushStanding(view), plainText(pushEvidence(view, NOW, true))]).toEqual([standing, evidence])
  })
})

test('while no poll is answered, no recovery of pushes is told, because no loss can be noticed', () => {
  const lossy: PushChannelView = { ...came, health: 'lossy', loss: 0.2 }
  const told = (view: PushChannelView) => plainText(pushEvidence(view, NOW, false))
  expect(told({ ...lossy, probation: trial })).toBe(
    'By estimate, too many pushes were lost or not understood. Whether they still are is not known while no poll is answered.',
  )
  expect(told(lossy)).toBe(`${LAST} By estimate, 20 % were lost.`)
})
