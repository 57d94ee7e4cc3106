import type { ChangeSet } from '../../core/domain/history/change-set.ts'
import type { Transactions, WriteTx } from '../../core/store/write-store.ts'
import { earliestDueMs, type WatchdogRules } from './watchdog.rules.ts'
import { AT_ONCE, noteChange } from './watchdogs.rows.ts'

/**
 * Wraps the store for transactions that change histories or what is said of orders: each notes when its changes can make a parcel stalled. Without a
 * rule it adds nothing.
 */
export function watchHistories<Store extends Transactions>(store: Store, rules: () => WatchdogRules): Store {
  return {
    ...store,
    transaction: (work, kind) => store.transaction((tx) => work(rules().rules.length === 0 ? tx : watching(tx, rules())), kind),
  } satisfies Store
}

function watching(tx: WriteTx, rules: WatchdogRules): WriteTx {
  const hasLabels = rules.rules.some(({ when }) => when.label !== null)
  return {
    ...tx,
    applyChanges(changes) {
      // The notes have no sequences, so they go before what locks the counter of a server.
      for (const [parcelId, dueAtMs] of changedParcels(changes, rules)) noteChange(tx, parcelId, dueAtMs)
      return tx.applyChanges(changes)
    },
    saveContexts(contexts) {
      if (hasLabels) for (const { parcelId } of contexts) noteChange(tx, parcelId, AT_ONCE)
      tx.saveContexts(contexts)
    },
  }
}

/** Returns the parcels whose entries change, in the order of their ids, each with the earliest time at which that can make it stalled; null: never. */
function changedParcels({ writes }: Pick<ChangeSet, 'writes'>, rules: WatchdogRules): readonly (readonly [number, number | null])[] {
  const changed = new Map<number, number | null>()
  const hasTypes = rules.rules.some(({ when }) => when.distributionType !== null)
  for (const { sightings, join, answers, overwritten } of writes) {
    if (join !== null) {
      for (const { state } of join.others) changed.delete(state.parcelId)
      changed.set(join.parcel.parcelId, AT_ONCE)
    }
    for (const { parcelId, kept } of sightings) {
      const { status, detailedStatus, instant } = kept.sighting
      const dueAtMs = earliestDueMs(rules, { status, detailedStatus, atMs: instant.atMs, learntAtMs: kept.learntAtMs })
      const before = changed.get(parcelId) ?? null
      changed.set(parcelId, dueAtMs === null || before === null ? (dueAtMs ?? before) : Math.min(dueAtMs, before))
    }
    // An answer may say another type of the parcel, whatever entries it lists. A rebuild overwrites what it corrects, and may only take entries away.
    for (const { parcelId } of hasTypes ? [...answers, ...overwritten] : overwritten) changed.set(parcelId, AT_ONCE)
  }
  return [...changed].sort(([one], [other]) => one - other)
}
