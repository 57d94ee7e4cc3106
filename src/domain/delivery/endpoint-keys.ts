/**
 * The stored secrets of an endpoint: its keys and the values of its fixed headers, each encrypted for this endpoint alone. While a key is
 * being replaced, the old key signs the specification's header, and the new key signs another header. So a receiver that checks one header
 * never refuses (CONTRACT, "Pushes to endpoints").
 */
export interface SealedKeys {
  readonly current: string
  /** When the current key was set, epoch milliseconds; absent: not known. */
  readonly currentSinceMs?: number
  /** The key that replaces the current one at `fromMs`, epoch milliseconds; null: no key is being replaced. */
  readonly next: { readonly sealed: string; readonly fromMs: number } | null
  /** Only in stores of earlier versions: a key that was replaced at once and still signs until `untilMs`; null: there is none. */
  readonly previous: { readonly sealed: string; readonly untilMs: number } | null
  /** The values of its fixed headers, by lower-case name; absent: it has none. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Where a config takes a secret from: an environment variable, by its name, or a file, by its path. */
export type SecretOrigin = { readonly env: string } | { readonly file: string }

/** How long both keys sign. Receivers are used to a day. */
const OVERLAP_MS = 24 * 60 * 60 * 1000

/** A single key, which is not being replaced. `sinceMs`: when it was set; absent: not known. */
export function onlyKey(sealed: string, sinceMs?: number): SealedKeys {
  return { current: sealed, ...(sinceMs === undefined ? {} : { currentSinceMs: sinceMs }), next: null, previous: null }
}

/** The keys once the next key has taken over. */
function onlyNext(keys: SealedKeys, { sealed, fromMs }: NonNullable<SealedKeys['next']>): SealedKeys {
  return replaceKey(keys, sealed, fromMs - OVERLAP_MS)
}

/** The keys with `sealed` as the current key. A replacement that is not finished is dropped. */
export function replaceKey({ headers }: SealedKeys, sealed: string, sinceMs?: number): SealedKeys {
  return { ...onlyKey(sealed, sinceMs), ...(headers === undefined ? {} : { headers }) }
}

/** The keys with some values of fixed headers changed; null removes one. */
export function changeHeaders(keys: SealedKeys, change: Readonly<Record<string, string | null>>): SealedKeys {
  const { headers: before, ...rest } = keys
  const kept = Object.entries({ ...before, ...change }).flatMap(([name, sealed]) => (sealed === null ? [] : [[name, sealed] as const]))
  return kept.length === 0 ? rest : { ...rest, headers: Object.fromEntries(kept) }
}

/** The keys at `nowMs`. Returns the same object unless a key has expired. */
export function keysAt(keys: SealedKeys, nowMs: number): SealedKeys {
  const { next, previous } = keys
  if (next !== null && next.fromMs <= nowMs) return onlyNext(keys, next)
  return previous !== null && previous.untilMs <= nowMs ? { ...keys, previous: null } : keys
}

/** When the keys change next, epoch milliseconds; infinite: never. */
export function keysChangeAtMs({ next, previous }: SealedKeys): number {
  return Math.min(next?.fromMs ?? Number.POSITIVE_INFINITY, previous?.untilMs ?? Number.POSITIVE_INFINITY)
}

/** The keys after the clock was put back. Times in the future move back with it, so that the overlap lasts as long as intended. */
export function shiftKeys({ next, previous, ...current }: SealedKeys, byMs: number): SealedKeys {
  return {
    ...current,
    next: next === null ? null : { ...next, fromMs: next.fromMs - byMs },
    previous: previous === null ? null : { ...previous, untilMs: previous.untilMs - byMs },
  }
}

/** Begins to replace the current key. Drops an earlier replacement that is not finished. */
export function rotateKeys(keys: SealedKeys, sealed: string, nowMs: number): SealedKeys {
  return { ...keysAt(keys, nowMs), next: { sealed, fromMs: nowMs + OVERLAP_MS } }
}

/** Ends the overlap now, so that the new key signs alone. Null: no key is being replaced. */
export function endOverlap(keys: SealedKeys, nowMs: number): SealedKeys | null {
  const { current, currentSinceMs, next, previous } = keysAt(keys, nowMs)
  if (next !== null) return onlyNext(keys, next)
  return previous === null ? null : replaceKey(keys, current, currentSinceMs)
}

/**
 * The keys after a receiver accepted a delivery that was signed with `used`. If that is the next key, the receiver has switched, so the
 * overlap ends.
 */
export function keysAfterUse(keys: SealedKeys, used: string): SealedKeys {
  return keys.next?.sealed === used ? onlyNext(keys, keys.next) : keys
}

/** All sealed texts: of keys and of values of fixed headers. */
export function sealedTexts({ current, next, previous, headers = {} }: SealedKeys): readonly string[] {
  return [current, next?.sealed, previous?.sealed, ...Object.values(headers)].filter((text) => text !== undefined)
}

/** Replaces the sealed texts that have a replacement. The keys inside the texts stay the same. */
export function resealKeys(keys: SealedKeys, replacements: ReadonlyMap<string, string>): SealedKeys {
  const { current, next, previous, headers, ...since } = keys
  const renewed = (text: string) => replacements.get(text) ?? text
  return {
    ...since,
    current: renewed(current),
    next: next === null ? null : { ...next, sealed: renewed(next.sealed) },
    previous: previous === null ? null : { ...previous, sealed: renewed(previous.sealed) },
    ...(headers === undefined
      ? {}
      : { headers: Object.fromEntries(Object.entries(headers).map(([name, sealed]) => [name, renewed(sealed)])) }),
  }
}

/** Endpoints whose key cannot be decrypted. They are sent nothing until it can. */
export interface LostKeys {
  /** The file or setting to restore. */
  readonly where: string
  readonly endpoints: number
}
