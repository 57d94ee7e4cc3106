import { describe, expect, test } from 'vitest'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { aPoll, pushBody } from '../../../support/history/builders.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

const OLD = '2026-03-01T08:00:00Z'

const pushOf = (id: string, eventTime: string) =>
  incomingPush(pushBody({ trackingIds: [id], eventTime, status: 'TerminalArrived', texts: { en: 'Arrived' } }), NOON)

describe.each(engines)('backfill that is turned off and on again on $name', (engine) => {
  test.each([0, 1])('6.6: an entry sent as backfill is not sent again when pushed %i events later', async (meanwhile) => {
    const { writes } = await openStore(NOON, engine)
    const turned = await addEndpoint(writes, NOON, { name: 'turned', backfill: true })
    const control = await addEndpoint(writes, NOON, { name: 'control' })
    await writes.record([pushOf('1001', '2026-03-01T11:00:00Z')])
    const statuses = [{ eventTimestamp: OLD, status: 'TerminalArrived' }]
    const observation = aPoll({ asked: '1001', askedAtMs: NOON, trackingIds: ['1001'], language: 'en', statuses })
    await writes.record([{ kind: 'poll', observation, watch: false }])
    expect([await turned.take(), await control.take()].map(({ length }) => length)).toEqual([2, 1])

    const turn = (backfill: boolean) => writes.changeEndpoint({ id: turned.id, change: { backfill }, key: null, nowMs: NOON })
    await turn(false)
    for (let nth = 0; nth < meanwhile; nth++) await writes.record([pushOf('2002', '2026-03-01T10:00:00Z')])
    await turn(true)
    await writes.record([pushOf('1001', OLD)])
    expect([await turned.take(), await control.take()].map(({ length }) => length)).toEqual([meanwhile, meanwhile + 1])
  })
})
