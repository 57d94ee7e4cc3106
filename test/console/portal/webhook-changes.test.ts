import { expect, test } from 'vitest'
import { changesIn } from '../../../src/console/portal/webhooks/webhook.pages.ts'
import { fieldsOfEndpoint, type WebhookFields } from '../../../src/console/portal/webhooks/webhook-form.ts'
import { type Endpoint, noFilters } from '../../../src/core/domain/delivery/endpoint-state.ts'

const TILL: Endpoint = {
  id: '1',
  name: 'till',
  url: 'http://old.example/',
  enabled: true,
  signature: 'carrier',
  filters: noFilters,
  events: ['entry'],
  backfill: false,
  ratePerSecond: null,
  concurrency: null,
  scheduleMs: null,
  refusals: 'wait',
  headers: [],
}

/** Sends the form that showed `before`, with these fields changed, when the webhook is as in `now`. */
function send(before: Endpoint, changed: Partial<WebhookFields>, now: Endpoint = before) {
  const shown = fieldsOfEndpoint(before)
  return changesIn({ ...shown, ...changed }, JSON.stringify(shown), fieldsOfEndpoint(now), now)
}

test('a form sends only the fields that it changes', () => {
  expect(send(TILL, { rate: '5' }).body).toEqual({ rate: 5 })
  expect(send(TILL, {}).body).toBeNull()
})

test('a form keeps what somebody else has changed meanwhile, filters included', () => {
  const now = { ...TILL, url: 'http://new.example/', filters: { ...noFilters, distributionType: ['Mailbox'] } }
  const { body, conflicts, fields } = send(TILL, { detailedStatus: 'Loaded' }, now)
  expect(body).toEqual({ filters: { ...noFilters, detailedStatus: ['Loaded'], distributionType: ['Mailbox'] } })
  expect([conflicts, fields.url]).toEqual([[], 'http://new.example/'])
})

test('a field that both have changed is no change but a conflict, with both values', () => {
  const now = { ...TILL, url: 'http://new.example/', name: 'tills' }
  expect(send(TILL, { url: 'http://mine.example/', name: 'tills' }, now).conflicts).toEqual([
    { field: 'url', now: 'http://new.example/', sent: 'http://mine.example/' },
  ])
})

test('an empty list of values stays empty, and a value with a comma stays one value', () => {
  const filters = { ...noFilters, status: [], detailedStatus: ['Lost, found', '"so"', 'b'], distributionType: [] }
  const { detailedStatus, distributionType, status } = fieldsOfEndpoint({ ...TILL, filters })
  expect(send(TILL, { detailedStatus, distributionType, status }).body).toEqual({ filters })
})
