import { describe, expect, onTestFinished, test } from 'vitest'
import { StorageFailure } from '../../../../src/core/domain/errors.ts'
import type { Incoming } from '../../../../src/core/domain/history/recording.ts'
import { createRecord, recordEach } from '../../../../src/core/flow/history/record.tx.ts'
import { createCarrierModelKeeper } from '../../../../src/core/flow/polling/carrier-model.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import type { WriteStore } from '../../../../src/core/store/write-store.ts'
import { aPoll, pushBody } from '../../../support/history/builders.ts'
import { strictLog } from '../../../support/history/observed.ts'
import { recordOptions } from '../../../support/history/policy.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines, newPlace } from '../../../support/store/engines.ts'
import { storedRows } from '../../../support/store/stored-rows.ts'
import { incomingPush } from '../../../support/store/write-side.ts'

const FULL = Array.from({ length: 2000 }, (_, at) => ({ eventTimestamp: new Date(NOON - at * 1000).toISOString() }))
const early = '2026-02-01T00:00:00.000Z'

/** Opens a store that counts the transactions of a batch. More than one means that its observations were recorded separately. */
async function startCounting(engine: Engine) {
  const path = await newPlace(engine)
  const whole = await engine.openWriteStore(path)
  onTestFinished(() => whole.close())
  const counts = { transactions: 0 }
  const store: WriteStore = {
    ...whole,
    transaction(work) {
      counts.transactions += 1
      return whole.transaction(work)
    },
  }
  const clock = { now: () => NOON, monotonic: () => 0 }
  const model = createCarrierModelKeeper(clock)
  const ports = {
    store,
    clock,
    log: strictLog,
    model: model.current,
    learn: model.learn,
    foundByPoll: model.foundByPoll,
    tombstoneKey: () => null,
  }
  const record = createRecord(ports, recordOptions)
  const poll = (asked: string, statuses: readonly object[], trackingIds = [asked]): Incoming => ({
    kind: 'poll',
    observation: aPoll({ asked, trackingIds, askedAtMs: NOON, statuses: statuses.map((one) => ({ ...one })) }),
    watch: true,
  })
  await record([poll('1001', FULL)])
  return {
    poll,
    async record(...batch: readonly Incoming[]) {
      Object.assign(counts, { transactions: 0 })
      const { outcomes } = await record(batch)
      return { kinds: outcomes.map(({ kind }) => kind), ...counts }
    },
    read: <Row>(query: string) => storedRows<Row>(path, query),
  }
}

const push = (trackingIds: readonly string[], eventTime = early) => incomingPush(pushBody({ trackingIds, eventTime }), NOON)
const once = { transactions: 1 }

describe.each(engines)('refusals by a full parcel on $name', (engine) => {
  test('1.6: a push that a full parcel refuses leaves the rest of its batch recorded', async () => {
    const { record, read } = await startCounting(engine)
    const refused = push(['1001', '9009'])
    expect(await record(push(['2001']), refused, push(['3001']))).toEqual({ kinds: ['recorded', 'quarantined', 'recorded'], ...once })
    expect(await record(push(['4001']), refused)).toEqual({ kinds: ['recorded', 'duplicate'], ...once })
    expect(await read('select value from identifier order by value')).toEqual(['1001', '2001', '3001', '4001'].map((value) => ({ value })))
    expect(await read('select state, reason, parcel_id, duplicates from inbox where reason is not null')).toEqual([
      { state: 1, reason: 'parcel_full', parcel_id: 0, duplicates: 1 },
    ])
    expect(await read('select count(*) as count from inbox')).toEqual([{ count: 4 }])
    expect(await read('select entry_count, is_full from parcel where is_full = 1')).toEqual([{ entry_count: 2000, is_full: 1 }])
  })

  test('1.6: an observation that adds nothing to a full parcel is recorded', async () => {
    const { record } = await startCounting(engine)
    expect(await record(push(['1001'], new Date(NOON).toISOString()))).toEqual({ kinds: ['recorded'], ...once })
    expect(await record(push(['1001'], new Date(NOON).toISOString()))).toEqual({ kinds: ['duplicate'], ...once })
  })

  test('1.4, 1.6: a refused push of two parcels, or a refused poll, leaves the rest recorded', async () => {
    const { record, poll, read } = await startCounting(engine)
    await record(push(['2001']))
    expect(await record(push(['1001', '2001'], '2026-02-02T00:00:00.000Z'), push(['3001']))).toEqual({
      kinds: ['quarantined', 'recorded'],
      ...once,
    })
    expect(await record(push(['4001']), poll('1001', [{ eventTimestamp: early }], ['1001', '9009']))).toEqual({
      kinds: ['recorded', 'quarantined'],
      ...once,
    })
    expect(await read('select value from identifier order by value')).toEqual(['1001', '2001', '3001', '4001'].map((value) => ({ value })))
  })
  test('an observation whose transaction was rolled back leaves nothing in memory', async () => {
    const path = await newPlace(engine)
    const whole = await engine.openWriteStore(path)
    onTestFinished(() => whole.close())
    let takesBack = true
    const store: WriteStore = {
      ...whole,
      transaction: (work) =>
        whole.transaction(async (tx) => {
          const done = await work(tx)
          if (takesBack) throw new StorageFailure('planned')
          return done
        }),
    }
    const log = { ...strictLog, error: () => undefined }
    const ignore = () => undefined
    const clock = { now: () => NOON, monotonic: () => 0 }
    const ports = {
      store,
      clock,
      log,
      model: createCarrierModelKeeper(clock).current,
      learn: ignore,
      foundByPoll: ignore,
      tombstoneKey: () => null,
    }
    await expect(recordEach([push(['1001'])], ports, recordOptions)).rejects.toThrow('planned')
    takesBack = false
    await recordEach([push(['2001'])], ports, recordOptions)
    const [row] = await storedRows<object>(
      path,
      'select count(*) as sightings, count(content.id) as contents from sighting left join content on content.id = content_id',
    )
    expect(row).toEqual({ sightings: 1, contents: 1 })
  })
})
