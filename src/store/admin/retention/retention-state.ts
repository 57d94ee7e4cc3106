import type { RetentionState } from '../../../domain/admin/retention.ts'
import { decodeRetentionState } from '../../codec.ts'
import type { Session } from '../../engine.ts'
import { loadSetting, saveSetting } from '../../settings.ts'

const SETTING = 'retention'

const NOTHING: RetentionState = { pass: null, last: null }

export async function loadRetention(session: Session): Promise<RetentionState> {
  const stored = await loadSetting(session, SETTING)
  return (stored === null ? null : decodeRetentionState(stored)) ?? NOTHING
}

export async function saveRetention(session: Session, state: RetentionState): Promise<void> {
  await saveSetting(session, SETTING, Buffer.from(JSON.stringify(state)))
}
