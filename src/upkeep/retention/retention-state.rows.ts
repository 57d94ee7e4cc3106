import { decodeRetentionState } from '../../core/store/codec.ts'
import type { Session } from '../../core/store/engine.ts'
import { loadSetting, saveSetting } from '../../core/store/settings.ts'
import type { RetentionState } from './retention.rules.ts'

const SETTING = 'retention'

const NOTHING: RetentionState = { pass: null, last: null }

export async function loadRetention(session: Session): Promise<RetentionState> {
  const stored = await loadSetting(session, SETTING)
  return (stored === null ? null : decodeRetentionState(stored)) ?? NOTHING
}

export async function saveRetention(session: Session, state: RetentionState): Promise<void> {
  await saveSetting(session, SETTING, Buffer.from(JSON.stringify(state)))
}
