import { createHash } from 'node:crypto'
import { type Explanation, type SuspectPush, searchMismatch } from './mismatch/explain-mismatch.ts'

/** A push that was refused because its signature does not match, with an explanation. Neither its body nor a key is kept. */
export interface Refusal extends Explanation {
  readonly atMs: number
  /** Who sent it. */
  readonly address: string
  /** Some of its headers by name, cut to a limited length. */
  readonly headers: Readonly<Record<string, string>>
  /** Null: the body was not read, or was too large to be examined. */
  readonly body: { readonly bytes: number; readonly sha256: string } | null
}

/** A refusal as it is stored. */
export interface KeptRefusal extends Refusal {
  readonly refusalId: number
}

/** The parts of a refused push that are examined. */
export interface RefusedPush extends Pick<SuspectPush, 'body' | 'signatures'> {
  readonly address: string
  /** The first value of a header; null: there is none. */
  readonly header: (name: string) => string | null
}

/** How many refusals are kept: the last ones. */
export const REFUSALS_KEPT = 300

/** Headers that say who has sent a push and what happened to it on the way. None of them is meant for a secret. */
const KEPT_HEADERS = ['content-type', 'content-length', 'content-encoding', 'transfer-encoding', 'user-agent', 'via'].concat([
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-request-id',
  'traceparent',
])
const HEADER_CHARS_MAX = 200

type Keys = Pick<SuspectPush, 'keys' | 'otherKeys'>

/**
 * Enough to try, with two keys, every single mistake of the key, the header and the body, and the likelier pairs. That takes some 90 ms for
 * a usual push.
 */
const BOUNDS = { triesMax: 3000, hashedBytesMax: 16 * 1024 * 1024 }

/** Explains a refused push. It pauses like `searchMismatch`. */
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
