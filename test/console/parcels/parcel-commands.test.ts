import { expect, test } from 'vitest'
import { createParcelCommands } from '../../../src/console/parcels/parcel-commands.ts'
import type { Refreshed } from '../../../src/core/flow/polling/refresh.ts'
import { NOON } from '../../support/runner/constants.ts'

const NUMBER = 'AB123456789SE'
const WHY = 'It has answered no question (403).'

/** Refreshes a number whose poll ends with `end`. `known`: whether a parcel has the number. */
function refresh(end: Refreshed, known: boolean) {
  const due = { parcelId: 1, identifiers: [NUMBER] }
  const commands = createParcelCommands({
    write: {
      watch: async () => null,
      unwatch: async () => null,
      claimPoll: async () => (known ? due : null),
      recordAction: async () => undefined,
      erasedAtMs: async () => null,
    },
    refresh: { refreshNow: async () => end },
    fetchUnknown: async () => end,
    whyNotAsked: () => WHY,
    whyUnusable: (sinceMs) => (sinceMs === NOON ? ': it rejected the question (403) "Not you"' : ''),
    underWay: { during: (_parcelId, work) => work() },
    clock: { now: () => NOON, monotonic: () => 0 },
  })
  return commands.refresh(NUMBER, { kind: 'app', name: 'ops', address: null })
}

test.each([true, false])('only an answer that the carrier knows none makes a refresh say so (known: %s)', async (known) => {
  expect(await refresh('unknown', known)).toMatchObject({ outcome: 'unknown' })
  await expect(refresh('unusable', known)).rejects.toMatchObject({
    code: 'upstream_unavailable',
    message: /no usable answer about this parcel: it rejected the question \(403\) "Not you"\. Whether/,
  })
  await expect(refresh('unavailable', known)).rejects.toMatchObject({
    code: 'upstream_unavailable',
    message: `The carrier cannot be asked now. ${WHY}`,
  })
})
