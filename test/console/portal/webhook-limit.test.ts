import { expect, test } from 'vitest'
import { presentEndpoint } from '../../../src/console/cli/present-endpoint.ts'
import { charactersOf } from '../../../src/console/portal/html.ts'
import { limitText } from '../../../src/console/portal/webhooks/webhook.page.ts'
import { newHealth } from '../../../src/core/domain/delivery/endpoint-health.ts'
import { viewEndpoint } from '../../../src/core/flow/delivery/endpoint-queries.ts'
import type { InspectedEndpointAnswer } from '../../../src/core/http/delivery/endpoints.routes.ts'
import { endpointState } from '../../support/delivery/endpoint-state.ts'
import { NOON } from '../../support/runner/constants.ts'

const MINUTE = 60_000
const reads = {
  countBacklogs: async () => new Map(),
  hasProbe: async () => false,
  lastFailures: async () => new Map(),
}

/** Views an endpoint that refused at 5.2 a second, and asked to wait for `waitMs`. */
const viewed = (waitMs: number, atMs: number) => {
  const pace = { perSecond: 2.6, limitPerSecond: 5.2, halvedAtMs: NOON, waitUntilMs: NOON + waitMs }
  return viewEndpoint(reads, endpointState({}, { health: { ...newHealth, failingSinceMs: NOON, pace } }), atMs)
}

test('7.4: the portal says what an endpoint takes, until five minutes after its last wait', async () => {
  const { limit } = await viewed(MINUTE, NOON)
  expect(limit === null ? null : charactersOf(limitText(limit, NOON))).toMatch(/^limits us to about 5\/s, waits until /)
  const later = (await viewed(MINUTE, NOON + 2 * MINUTE)).limit
  expect(later === null ? null : charactersOf(limitText(later, NOON + 2 * MINUTE))).toBe('limits us to about 5/s')
  expect((await viewed(MINUTE, NOON + 6 * MINUTE)).limit).toBeNull()
})

const ENDPOINT: InspectedEndpointAnswer = {
  id: '1',
  name: 'shop',
  url: 'http://127.0.0.1:9/',
  enabled: true,
  signature: 'carrier',
  filters: { status: null, detailedStatus: null, distributionType: null, label: null, displayToConsumer: null },
  events: ['entry'],
  backfill: false,
  beganAt: '2026-03-01T08:00:00Z',
  rate: null,
  concurrency: null,
  schedule: null,
  refusals: 'wait',
  headers: {},
  origin: 'managed',
  state: 'active',
  disabledBecause: null,
  disabledSince: null,
  disabledBy: null,
  waiting: 0,
  oldestWaitingSince: null,
  givenUp: 0,
  lastSuccessAt: null,
  lastFailure: null,
  failingSince: null,
  limitPerSecond: null,
  waitsUntil: null,
  nextProbeAt: null,
  newEventProbeAt: null,
  keySince: null,
  nextKeyFrom: null,
  queuedTo: null,
  keyFingerprint: null,
  nextKeyFingerprint: null,
  keyFrom: null,
  failures: [],
}

test('7.4: `endpoints show` says what an endpoint that limits us takes, and until when it waits', () => {
  const instant = '2026-03-01T12:00:00Z'
  const shown = presentEndpoint({ ...ENDPOINT, limitPerSecond: 5.2, waitsUntil: instant, failingSince: instant })
  expect(shown).toContain(`active; it limits us to about 5/s, and asked to wait until ${instant}`)
})
