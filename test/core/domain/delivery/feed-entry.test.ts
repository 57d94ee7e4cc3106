import { expect, test } from 'vitest'
import { payloadOf } from '../../../../src/core/domain/delivery/feed-entry.ts'
import type { PollObservation, PushObservation } from '../../../../src/core/domain/history/observation.ts'
import { NO_CONTEXT } from '../../../../src/core/domain/history/order-context.ts'
import { aPoll, aPush } from '../../../support/history/builders.ts'
import { emptyParcel, observe, presentRecord } from '../../../support/history/parcel-record.ts'

const PUSH = { kind: 'push', inboxId: 7 } as const

/** Returns the payload that endpoints get for the newest entry after these observations. */
function payloadAfter(observations: readonly (PushObservation | PollObservation)[], hasBody: boolean) {
  const shown = presentRecord(observations.reduce(observe, emptyParcel))
  const [entry] = shown.entries
  if (entry === undefined) throw new Error('there is no entry')
  return payloadOf(PUSH, { entry, parcel: { ...shown, parcelId: 1, identifiers: ['9001', '9002'], order: NO_CONTEXT }, hasBody })
}

test('an event from a push is sent with the push’s bytes and filtered by its distribution type', () => {
  expect(payloadAfter([aPush({ distributionType: 'Mailbox' })], true)).toEqual({ ...PUSH, distributionType: 'Mailbox' })
})

test('a push without a distribution type is filtered by the type of its parcel', () => {
  const push = aPush({ distributionType: '' })
  expect(payloadAfter([push, aPoll({ distributionType: 'Doorstep', statuses: [] })], true)).toEqual({
    ...PUSH,
    distributionType: 'Doorstep',
  })
})

test('an event without a body is composed; if it names no identifier, it gets the parcel’s', () => {
  const named = aPush({ trackingIds: ['1001'], distributionType: 'Mailbox' })
  expect(payloadAfter([named], false)).toEqual({ kind: 'composed', trackingIds: ['1001'], distributionType: 'Mailbox' })
  expect(payloadAfter([{ ...named, trackingIds: [] }], false)).toMatchObject({ trackingIds: ['9001'] })
})
