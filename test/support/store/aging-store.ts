import type { FeedItem } from '../../../src/core/domain/delivery/feed-entry.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import { loadRetention } from '../../../src/upkeep/retention/remove-aged.rows.ts'
import type { Retention } from '../../../src/upkeep/retention/retention.rules.ts'
import { pushBody } from '../history/builders.ts'
import { DAY_MS, NOON } from '../runner/constants.ts'
import { incomingPush, openStore } from './write-side.ts'

/** These periods are so short that all of them pass in a test. */
const SHORT: Retention = {
  rawMs: 6 * DAY_MS,
  historyMs: 10 * DAY_MS,
  deliveriesMs: 3 * DAY_MS,
  feedMs: 6 * DAY_MS,
  auditMs: 10 * DAY_MS,
  reportsMs: 10 * DAY_MS,
  heldMs: 20 * DAY_MS,
}

/** Opens a store in which days pass, each with a retention pass at its end. */
export async function openAgingStore(engine: Engine, retention: Retention = SHORT) {
  const store = await openStore(NOON, engine)
  const { writes, reads } = store
  await writes.adjustRetention(retention)

  /** Runs a whole pass, and resolves with the number of its batches. */
  async function prune(): Promise<number> {
    let batches = 1
    while (!(await writes.prune({ nowMs: store.now() })).isDone) batches++
    return batches
  }
  const bodyOf = (id: string, fields: object = {}) =>
    pushBody({ trackingIds: [id], eventTime: new Date(store.now()).toISOString(), ...fields })
  return {
    ...store,
    prune,
    bodyOf,
    async passDays(days: number) {
      for (let day = 0; day < days; day++) {
        store.pass(DAY_MS)
        await prune()
      }
    },
    /** Pushes an event of the present time. */
    report: (id: string, fields: object = {}) => store.record(incomingPush(bodyOf(id, fields), store.now())),
    pushBytes: (body: Uint8Array) => store.record(incomingPush(body, store.now())),
    async last() {
      const { last } = await loadRetention(reads.session)
      if (last === null) throw new Error('no pass has ended yet')
      return last
    },
    async events(): Promise<readonly FeedItem[]> {
      return (await reads.readFeed({ after: 0, limit: 1000 })).items
    },
    told: async () => (await reads.listOperatorEvents({ event: null, fromMs: null, toMs: null, before: null, limit: 100 })).toReversed(),
  }
}
