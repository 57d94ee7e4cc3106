import { expect, test } from 'vitest'
import { webhookPage } from '../../../src/console/portal/webhooks/webhook.page.ts'
import { newHealth } from '../../../src/core/domain/delivery/endpoint-health.ts'
import type { EndpointState } from '../../../src/core/domain/delivery/endpoint-state.ts'
import { inspectEndpoint } from '../../../src/core/flow/delivery/endpoint-queries.ts'
import { endpointState } from '../../support/delivery/endpoint-state.ts'
import { visitAt } from '../../support/portal/visit.ts'
import { NOON } from '../../support/runner/constants.ts'

const FAILURE = { status: 500, reason: null, answerStart: Buffer.from('no'), count: 1, firstAtMs: NOON, lastAtMs: NOON, deliveryId: 1 }
const FAILED = { ...newHealth, failingSinceMs: NOON }

/** The page of an endpoint whose last attempt failed. */
async function pageOf(change: Partial<EndpointState>): Promise<string> {
  const reads = {
    countBacklogs: async () => new Map([['1', { waiting: 1, oldestAtMs: NOON, dead: 0 }]]),
    hasProbe: async () => false,
    lastFailures: async () => new Map([['1', FAILURE]]),
    listFailures: async () => [FAILURE],
  }
  const state = endpointState({ name: 'shop' }, { health: FAILED, ...change })
  const view = { ...(await inspectEndpoint(reads, state, { nowMs: NOON, fingerprints: null, keyFrom: null })), attempts: [] }
  return webhookPage(visitAt('/portal'), view, null)
}

const buttonsOf = (page: string) => [...page.matchAll(/<button [^>]*>([^<]*)<\/button>/g)].map(([, name]) => name)
const namedIn = (page: string) => [...page.matchAll(/“([^”]+)”/g)].map(([, name]) => name)

test.each([
  ['once', {}, false],
  ['five times', { health: { ...FAILED, probing: { atMs: NOON, failed: 1 } } }, true],
] as const)('a webhook that failed %s names “Retry now” only if the page has that button', async (_often, change, isThere) => {
  const page = await pageOf(change)
  expect(page).toContain('It answers 500')
  expect([namedIn(page).includes('Retry now'), buttonsOf(page).includes('Retry now')]).toEqual([isThere, isThere])
  expect(page.includes('The relay tries again by itself.')).toBe(!isThere)
})

test.each(['managed', 'config'] as const)('a %s webhook that the relay has disabled can be enabled on its page', async (origin) => {
  const page = await pageOf({ origin, disabled: 'gone' })
  expect(page).toContain('Then enable it')
  expect(buttonsOf(page)).toContain('Enable')
  expect(page.includes('Remove shop')).toBe(origin === 'managed')
  expect(page.includes('remove it for good')).toBe(origin === 'managed')
})
