import type { AttemptResult } from '../../domain/delivery/delivery.ts'
import type { AnswerOf } from '../server/answer-schemas.ts'
import { presentAnswerStart } from '../server/present.ts'
import type { testSchema } from './endpoint-schemas.ts'

export function presentTest(result: AttemptResult): AnswerOf<typeof testSchema> {
  return {
    result: result.kind,
    status: result.kind === 'failed' ? null : result.status,
    reason: result.kind === 'failed' ? result.reason : null,
    durationMs: Math.round(result.durationMs),
    address: result.address ?? null,
    ...presentAnswerStart(result.answerStart),
  }
}
