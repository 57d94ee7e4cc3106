import { parseStored } from '../../domain/json-body.ts'
import type { CarrierMemory } from '../../domain/polling/call-budget.ts'
import { saveSetting } from '../../store/settings.ts'
import type { Transactions } from '../../store/write-store.ts'
import type { WriteSide } from '../write-side.ts'

const SETTING = 'carrier-memory'

/** Creates the verbs that store facts about the carrier, so that they outlast a restart. Reading throws if the record is damaged. */
export function createCarrierMemory(store: Transactions): Pick<WriteSide, 'carrierMemory' | 'rememberCarrier'> {
  return {
    carrierMemory: () =>
      store.transaction(async (tx) => {
        const kept = await tx.loadSetting(SETTING)
        return kept === null ? null : parseMemory(new TextDecoder().decode(kept))
      }),
    rememberCarrier: (memory) => store.transaction((tx) => saveSetting(tx, SETTING, new TextEncoder().encode(JSON.stringify(memory)))),
  }
}

function parseMemory(text: string): CarrierMemory {
  const value = parseStored(text)
  if (!isMemory(value)) throw new Error('the stored record about the carrier is damaged or of another format')
  return value
}

function isMemory(value: unknown): value is CarrierMemory {
  if (typeof value !== 'object' || value === null || !('atMs' in value && 'days' in value && 'refusal' in value)) return false
  if (!('pausedUntilMs' in value && 'tokenPausedUntilMs' in value && Array.isArray(value.days))) return false
  const times = [value.atMs, value.pausedUntilMs ?? 0, value.tokenPausedUntilMs ?? 0]
  if ('askedAtMs' in value) times.push(value.askedAtMs)
  return times.every(Number.isFinite) && value.days.every(isDay) && (value.refusal === null || isRefusal(value.refusal))
}

function isDay(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'day' in value && 'calls' in value && Number.isFinite(value.calls)
}

function isRefusal(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || !('tries' in value && 'untilMs' in value && 'mark' in value)) return false
  return Number.isFinite(value.tries) && Number.isFinite(value.untilMs) && (value.mark === null || isMark(value.mark))
}

function isMark(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || !('salt' in value && 'digest' in value)) return false
  return typeof value.salt === 'string' && typeof value.digest === 'string'
}
