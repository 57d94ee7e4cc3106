import { expect, test } from 'vitest'
import { charactersOf } from '../../../src/console/portal/html.ts'
import { eventTable } from '../../../src/console/portal/parts.ts'
import type { BodyFault } from '../../../src/core/domain/ingest/fault-in-body.ts'
import { faultInTable, faultSentence } from '../../../src/upkeep/inbox/inbox-list.page.ts'
import { OPERATOR_EVENTS } from '../../support/relay/routes.ts'

const NOW_MS = Date.UTC(2026, 10, 25, 14, 44)
const shop = { id: '3', name: 'shop' }

/** Returns the sentence that the page shows for an event, without tags. */
function told(event: string, detail: Readonly<Record<string, unknown>>): string {
  const row = charactersOf(eventTable([{ id: 1, atMs: NOW_MS, event, detail }], NOW_MS, OPERATOR_EVENTS.word)).split('<td')[1] ?? ''
  return row.replaceAll(/^[^>]*>|<[^>]*>/g, '').trim()
}

test.each([
  [
    'endpoint_failing',
    { endpoint: shop, since: '2026-11-25T10:05:07.286Z' },
    'shop has failed every attempt since 10:05 UTC. Look: parcel-relay endpoints show shop',
  ],
  [
    'endpoint_failing',
    { endpoint: shop, since: '2026-11-25T10:05:07.286Z', failure: { status: null, reason: 'connection_refused', answer: '' } },
    'shop has failed every attempt since 10:05 UTC. It gives no answer (connection refused). Look: parcel-relay endpoints show shop',
  ],
  [
    'endpoint_recovered',
    { endpoint: shop, downForMs: 5_400_000, waited: 1204 },
    'shop accepts events again, after 1 h 30 min. 1,204 events waited for it',
  ],
  [
    'endpoint_recovered',
    { endpoint: shop, downForMs: 5_400_000, waited: 10_000 },
    'shop accepts events again, after 1 h 30 min. At least 10,000 events waited for it',
  ],
  ['endpoint_disabled', { endpoint: shop, because: 'gone' }, 'shop answered 410 Gone and was disabled'],
  ['endpoint_disabled', { endpoint: shop, because: 'of a later version' }, 'shop was disabled: of a later version'],
  [
    'pushes_quarantined',
    { reason: 'json_syntax', count: 1, since: '2026-11-25T10:05:07.286Z' },
    '1 push was not understood since 10:05 UTC: it is not JSON',
  ],
  [
    'pushes_quarantined',
    { reason: 'event_time', count: 356, since: '2026-11-25T10:05:07.286Z' },
    '356 pushes were not understood since 10:05 UTC: eventTime is not a UTC time',
  ],
  [
    'pushes_not_understood',
    { reason: 'event_time', since: '2026-11-25T10:05:07.286Z' },
    'No push has been understood since 10:05 UTC: all go into quarantine: eventTime is not a UTC time',
  ],
  [
    'carrier_failing',
    { reason: 'server_error', status: null, since: '2026-11-25T10:05:07.286Z' },
    'The carrier fails: it failed inside (5xx), since 10:05 UTC',
  ],
  [
    'carrier_failing',
    { reason: 'rejected', status: 403, since: '2026-11-25T10:05:07.286Z' },
    'The carrier fails: it rejected the question (403), since 10:05 UTC',
  ],
  [
    'disk_usable',
    { freeBytes: 1, since: '2026-11-25T10:05:07.286Z', until: '2026-11-25T10:11:07.286Z', refused: 355 },
    'The store’s disk has room for pushes again. From 10:05 UTC until 10:11 UTC 355 requests were answered with 503. Does the carrier send these pushes again? If not, ask it to. To learn now what they reported about known parcels: parcel-relay refresh --all',
  ],
  [
    'disk_usable',
    {
      freeBytes: 1,
      since: '2026-11-25T10:05:07.286Z',
      until: '2026-11-25T10:11:07.286Z',
      refused: 1,
      down: [
        { lastSeenAt: '2026-11-25T10:06:07.286Z', startedAt: '2026-11-25T10:07:07.286Z' },
        { lastSeenAt: '2026-11-25T10:08:07.286Z', startedAt: '2026-11-25T10:10:07.286Z' },
      ],
    },
    'The store’s disk has room for pushes again. From 10:05 UTC until 10:11 UTC 1 request was answered with 503. The relay did not run all the time: it was last seen at 10:06 UTC and started at 10:07 UTC, and last seen at 10:08 UTC and started at 10:10 UTC; what was pushed in between got no answer and is not counted. Does the carrier send these pushes again? If not, ask it to. To learn now what they reported about known parcels: parcel-relay refresh --all',
  ],
  ['certificate_expiring', { listener: 'public', expiresAt: 'soon' }, 'The certificate of public expires at soon'],
])('%s becomes a plain sentence', (event, detail, sentence) => {
  expect(told(event, detail)).toBe(sentence)
})

test('a push that was cut off is shown with the number of bytes after which it ends', () => {
  const fault: BodyFault = { member: null, isMissing: false, from: 96, to: 96, found: '', unknown: [] }
  expect(charactersOf(faultSentence(fault))).toBe('It ends after 96 bytes.')
  expect(charactersOf(faultInTable(fault))).toBe('<small>ends after 96 bytes</small>')
  const renamed = { ...fault, member: 'eventTime', isMissing: true, to: 97, unknown: ['eventTimestamp'] }
  expect(charactersOf(faultInTable(renamed))).toBe('<code>eventTime</code> is missing, and <code>eventTimestamp</code> is unknown')
})
