import type { AttemptResult } from '../../domain/delivery/delivery.ts'
import { presentAnswerStart } from '../server/present.ts'

export function presentTest(result: AttemptResult): object {
  return {
    result: result.kind,
    status: result.kind === 'failed' ? null : result.status,
    reason: result.kind === 'failed' ? result.reason : null,
    durationMs: Math.round(result.durationMs),
    address: result.address ?? null,
    ...presentAnswerStart(result.answerStart),
  }
}
