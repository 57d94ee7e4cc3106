import type { CarrierMemory, WriteSide, WriteStore } from './ports.ts'

const SETTING = 'carrier-memory'

/** The verbs that keep what must outlive a run of its dealings with the carrier. What cannot be read is as good as nothing. */
export function createCarrierMemory(store: WriteStore): Pick<WriteSide, 'carrierMemory' | 'rememberCarrier'> {
  return {
    carrierMemory: () =>
      store.transaction(async (tx) => {
        const kept = await tx.loadSetting(SETTING)
        return kept === null ? null : parseMemory(new TextDecoder().decode(kept))
      }),
    rememberCarrier: (memory) => store.transaction((tx) => tx.saveSetting(SETTING, new TextEncoder().encode(JSON.stringify(memory)))),
  }
}

function parseMemory(text: string): CarrierMemory | null {
  const value: unknown = JSON.parse(text)
  return isMemory(value) ? value : null
}

function isMemory(value: unknown): value is CarrierMemory {
  return typeof value === 'object' && value !== null && 'atMs' in value && 'callsToday' in value && 'refusal' in value
}
