import type { CarrierMemory, WriteSide, WriteStore } from './ports.ts'

const SETTING = 'carrier-memory'

/** The verbs that keep what must outlive a run of its dealings with the carrier. Reading throws when what is kept is damaged. */
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

function parseMemory(text: string): CarrierMemory {
  const value: unknown = JSON.parse(text)
  if (!isMemory(value)) throw new Error('what an earlier run left about the carrier is damaged, or of another format')
  return value
}

function isMemory(value: unknown): value is CarrierMemory {
  if (typeof value !== 'object' || value === null || !('atMs' in value && 'callsToday' in value && 'refusal' in value)) return false
  return Number.isFinite(value.atMs) && Number.isFinite(value.callsToday) && (value.refusal === null || isRefusal(value.refusal))
}

function isRefusal(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || !('tries' in value && 'untilMs' in value && 'mark' in value)) return false
  return Number.isFinite(value.tries) && Number.isFinite(value.untilMs) && (value.mark === null || isMark(value.mark))
}

function isMark(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || !('salt' in value && 'digest' in value)) return false
  return typeof value.salt === 'string' && typeof value.digest === 'string'
}
