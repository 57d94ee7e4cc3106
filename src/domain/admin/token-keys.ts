import { z } from 'zod'
import { readInput } from '../read-input.ts'

/** The keys that sign the relay's own tokens. */
export interface TokenKeys {
  /** The key that signs new tokens. */
  readonly current: Uint8Array
  /** The key before the current one, and until when it verifies tokens, epoch milliseconds; null: there is none. */
  readonly previous: { readonly key: Uint8Array; readonly untilMs: number } | null
}

/** When and how to replace the key that signs tokens. */
export interface TokenKeyRotation {
  readonly nowMs: number
  /** How many milliseconds tokens that were signed with the replaced key stay valid; 0: they end now. */
  readonly keepMs: number
}

/** Replaces the current key with `next`. The current key becomes the previous one, and the key before it no longer verifies tokens. */
export function rotateTokenKeys({ current }: TokenKeys, next: Uint8Array, { nowMs, keepMs }: TokenKeyRotation): TokenKeys {
  return { current: next, previous: keepMs > 0 ? { key: current, untilMs: nowMs + keepMs } : null }
}

/** Returns the keys that verify tokens at `nowMs`, the current key first. */
export function verifyingKeys({ current, previous }: TokenKeys, nowMs: number): readonly Uint8Array[] {
  return previous !== null && nowMs < previous.untilMs ? [current, previous.key] : [current]
}

export const tokenRotationSchema = z.strictObject({ at: z.literal('now').optional().describe('Ends all tokens that were issued before.') })

/** Parses an order to replace the key of tokens. Throws `bad_request`. */
export function parseTokenRotation(body: unknown): { readonly isAtOnce: boolean } {
  const isEmpty = body === undefined || body === null || body === ''
  return { isAtOnce: readInput('body', tokenRotationSchema, isEmpty ? {} : body).at !== undefined }
}
