import { createHash } from 'node:crypto'
import type { Refusal, RefusedPush } from '../../core/domain/ingest/refused-spells.ts'
import { type Explanation, type SuspectPush, searchMismatch } from './explain-mismatch.rules.ts'

declare module '../../core/domain/ingest/refused-spells.ts' {
  /** Why the signature does not match. Contains neither the body nor a key. */
  interface Refusal extends Explanation {
    /** Some of the push's headers by name, with values of limited length. */
    readonly headers: Readonly<Record<string, string>>
    /** Null: the body was not read, or was too large to be examined. */
    readonly body: { readonly bytes: number; readonly sha256: string } | null
  }
}

export interface KeptRefusal extends Refusal {
  readonly refusalId: number
}

/** How many refusals are kept. The oldest ones are deleted. */
export const REFUSALS_KEPT = 300

/** Headers that show who sent a push and what happened to it on its way. None of them is meant for secrets. */
const KEPT_HEADERS = ['content-type', 'content-length', 'content-encoding', 'transfer-encoding', 'user-agent', 'via'].concat([
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-request-id',
  'traceparent',
])
const HEADER_CHARS_MAX = 200

type Keys = Pick<SuspectPush, 'keys' | 'otherKeys'>

/**
 * With two keys, these limits suffice for all single mistakes in the key, the header and the body, and for the likelier pairs of mistakes.
 * For a usual push the search takes some 90 ms.
 */
const BOUNDS = { triesMax: 3000, hashedBytesMax: 16 * 1024 * 1024 }

/** Explains why a push was refused. Yields between tries, as `searchMismatch` does. */
export function* explainRefusal(refused: RefusedPush, keys: Keys, atMs: number): Generator<undefined, Refusal> {
  const { body, signatures, header, address } = refused
  const push = { body, signatures, webhookId: header('webhook-id'), webhookTimestamp: header('webhook-timestamp'), ...keys }
  const explanation = yield* searchMismatch(push, BOUNDS)
  return {
    ...explanation,
    atMs,
    address,
    headers: keptHeaders(header, keys),
    body: body === null ? null : { bytes: body.length, sha256: createHash('sha256').update(body).digest('hex') },
  }
}

function keptHeaders(header: RefusedPush['header'], { keys, otherKeys }: Keys): Readonly<Record<string, string>> {
  const kept: Record<string, string> = {}
  for (const name of KEPT_HEADERS) {
    const value = header(name)
    if (value === null) continue
    const holdsKey = [...keys, ...otherKeys].some(({ key }) => value.includes(key.trim()))
    kept[name] = holdsKey ? '[a key]' : value.slice(0, HEADER_CHARS_MAX)
  }
  return kept
}
