import { z } from 'zod'
import { digest } from '../digest.ts'
import type { AttemptResult, FailureReason } from './delivery.ts'

// What a form of the portal shows again when it is sent twice (`OperatorAction.shown`).

/** Names a key by a digest of its encrypted form. The key itself is read from there. */
export function shownKey(sealed: string): object {
  return { key: digest(sealed) }
}

export function isShownKey(shown: unknown, sealed: string): boolean {
  return typeof shown === 'object' && shown !== null && 'key' in shown && shown.key === digest(sealed)
}

const common = { durationMs: z.number(), answerStart: z.string().transform((text) => Buffer.from(text, 'base64')) }
const testSchema = z.discriminatedUnion('kind', [
  z.object({ ...common, kind: z.literal('accepted'), status: z.number() }),
  z.object({ ...common, kind: z.literal('rejected'), status: z.number(), retryAfterMs: z.number().nullable() }),
  z.object({ ...common, kind: z.literal('failed'), reason: z.custom<FailureReason>(), detail: z.string() }),
])

/** Writes the result of a test as plain data, without the key that signed it. */
export function shownTest({ answerStart, ...result }: AttemptResult): object {
  return { ...result, byNextKey: undefined, answerStart: Buffer.from(answerStart).toString('base64') }
}

/** Reads what `shownTest` wrote; null: it is no longer kept. */
export function readShownTest(shown: unknown): AttemptResult | null {
  return testSchema.safeParse(shown).data ?? null
}
