import type { Engine } from '../../../src/core/store/contract.ts'
import type { WatchdogRule } from '../../../src/insight/watchdogs/watchdog.rules.ts'
import { listBreachesOfParcel } from '../../../src/insight/watchdogs/watchdogs.rows.ts'
import type { PushFields } from '../history/builders.ts'
import { openErasures } from '../store/erasures.ts'
import { aRule } from './a-rule.ts'

/** Opens a store whose parcels are watched over by rules. */
export async function openWatched(
  engine: Engine,
  rules: readonly WatchdogRule[] = [aRule()],
  place: string | null = null,
  looksFirst = true,
) {
  const store = await openErasures(engine, place)
  const { writes, reads, now } = store
  const take = (next: readonly WatchdogRule[]) => writes.adjustWatchdogs({ rules: next, zone: 'UTC' })
  await take(rules)
  /** Looks until nothing more is due. Returns how many parcels were looked at. */
  const look = async (mayTellUnchecked = true) => {
    let looked = 0
    for (;;) {
      const result = await writes.lookAtWatched({ nowMs: now(), limit: 10, mayTellUnchecked })
      looked += result.looked
      if (!result.isMore) return looked
    }
  }
  if (looksFirst) await look()
  return {
    ...store,
    take,
    look,
    scan: (status: string, atMs: number, fields: PushFields = {}) =>
      store.push({ status, detailedStatus: status, eventTime: new Date(atMs).toISOString(), ...fields }),
    told: async () => {
      const { items } = await reads.readFeed({ after: 0, limit: 1000 })
      return items.flatMap((item) => ('breach' in item && item.breach !== null ? [`${item.kind} ${item.breach.rule}`] : []))
    },
    breaches: async (identifier = '1001') =>
      (await listBreachesOfParcel(reads.session, identifier))?.map(({ rule, sinceMs, endedAtMs }) => [rule, sinceMs, endedAtMs !== null]),
  }
}
