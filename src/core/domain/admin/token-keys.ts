import { z } from 'zod'
import { readInput } from '../read-input.ts'

/** The keys that sign the relay's own tokens. */
export interface TokenKeys {
  /** The key that signs new tokens. */
  readonly current: Uint8Array
  /** The keys before the current one, the last one first. Each verifies tokens until the last token that it signed has expired. */
  readonly previous: readonly PreviousKey[]
}

export interface PreviousKey {
  readonly key: Uint8Array
  /** Epoch milliseconds. */
  readonly untilMs: number
}

/** Only operators replace keys, so more are a mistake. */
const PREVIOUS_MAX = 100

/** When and how to replace the key that signs tokens. */
export interface TokenKeyRotation {
  readonly nowMs: number
  /** How many milliseconds tokens that were signed with the replaced key stay valid; 0: they end now. */
  readonly keepMs: number
}

/** Replaces the current key with `next`. The current key becomes a previous one, unless all tokens end now. */
export function rotateTokenKeys({ current, previous }: TokenKeys, next: Uint8Array, { nowMs, keepMs }: TokenKeyRotation): TokenKeys {
  if (keepMs <= 0) return { current: next, previous: [] }
  const valid = previous.filter(({ untilMs }) => nowMs < untilMs)
  return { current: next, previous: [{ key: current, untilMs: nowMs + keepMs }, ...valid].slice(0, PREVIOUS_MAX) }
}

/** Returns the keys that verify tokens at `nowMs`, the current key first. */
export function verifyingKeys({ current, previous }: TokenKeys, nowMs: number): readonly Uint8Array[] {
  return [current, ...previous.filter(({ untilMs }) => nowMs < untilMs).map(({ key }) => key)]
}

export const tokenRotationSchema = z.strictObject({ at: z.literal('now').optional().describe('Ends all tokens that were issued before.') })

/** Parses an order to replace the key of tokens. Throws `bad_request`. */
export function parseTokenRotation(body: unknown): { readonly isAtOnce: boolean } {
  const isEmpty = body === undefined || body === null || body === ''
  return { isAtOnce: readInput('body', tokenRotationSchema, isEmpty ? {} : body).at !== undefined }
}

/** A session of the portal that was logged out. */
export interface EndedSession {
  /** The id of the session, or the digest of a token without an id. */
  readonly session: string
  /** Until when it is remembered: no token of the session is valid any more then. Epoch milliseconds. */
  readonly untilMs: number
  readonly nowMs: number
}
