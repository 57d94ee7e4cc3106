import { type CarrierMemory, parseCarrierMemory } from '../../domain/polling/call-budget.ts'
import { saveSetting } from '../../store/settings.ts'
import type { Transactions } from '../../store/write-store.ts'

const SETTING = 'carrier-memory'

/** Creates the verbs that store facts about calls of the carrier, so that they outlast a restart. Reading throws if the record is damaged. */
export function createCarrierMemory(store: Transactions) {
  return {
    /** Returns the facts that the last run saved about the carrier; null: it saved none. */
    carrierMemory: () =>
      store.transaction(async (tx) => {
        const kept = await tx.loadSetting(SETTING)
        const memory = kept === null ? null : parseCarrierMemory(new TextDecoder().decode(kept))
        if (kept !== null && memory === null) throw new Error('the stored record about the carrier is damaged or of another format')
        return memory
      }),
    /** Saves facts about the carrier for the next run. */
    rememberCarrier: (memory: CarrierMemory) =>
      store.transaction((tx) => saveSetting(tx, SETTING, new TextEncoder().encode(JSON.stringify(memory)))),
  }
}
