/**
 * The stored secrets of an endpoint: its keys and the values of its fixed headers, each encrypted for this endpoint alone. While a key is
 * being replaced, each push has two signatures: one with the old key, in the usual header, and one with the new key, in the header
 * `x-service-hmac-sha256-next`. So receivers can verify the push with either key (CONTRACT, "Pushes to endpoints").
 */
export interface SealedKeys {
  readonly current: string
  /** When the current key was set; absent: not known. */
  readonly currentSinceMs?: number
  /** The key that replaces the current one at `fromMs`; null: no key is being replaced. All times are epoch milliseconds. */
  readonly next: { readonly sealed: string; readonly fromMs: number } | null
  /** The values of the fixed headers, by lower-case name. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Where a config takes a secret from: the name of an environment variable, or the path of a file. */
export type SecretOrigin = { readonly env: string } | { readonly file: string }

/** How long both keys sign while a key is replaced: a day, as is common among senders of webhooks. */
const OVERLAP_MS = 24 * 60 * 60 * 1000

/** Returns the keys of an endpoint that has just one key and no fixed headers. `sinceMs`: when the key was set; absent: not known. */
export function onlyKey(sealed: string, sinceMs?: number): SealedKeys {
  return { current: sealed, ...(sinceMs === undefined ? {} : { currentSinceMs: sinceMs }), next: null }
}

function onlyNext(keys: SealedKeys, { sealed, fromMs }: NonNullable<SealedKeys['next']>): SealedKeys {
  return replaceKey(keys, sealed, fromMs - OVERLAP_MS)
}

/** Makes `sealed` the only key from now on. The fixed headers stay. */
export function replaceKey({ headers }: SealedKeys, sealed: string, sinceMs?: number): SealedKeys {
  return { ...onlyKey(sealed, sinceMs), ...(headers === undefined ? {} : { headers }) }
}

/** Sets the values of some fixed headers; null removes a header. */
export function changeHeaders(keys: SealedKeys, change: Readonly<Record<string, string | null>>): SealedKeys {
  const { headers: before, ...rest } = keys
  const kept = Object.entries({ ...before, ...change }).flatMap(([name, sealed]) => (sealed === null ? [] : [[name, sealed] as const]))
  return kept.length === 0 ? rest : { ...rest, headers: Object.fromEntries(kept) }
}

/** Applies the changes that are due at `nowMs`. Returns the same object if none is due. */
export function keysAt(keys: SealedKeys, nowMs: number): SealedKeys {
  return keys.next !== null && keys.next.fromMs <= nowMs ? onlyNext(keys, keys.next) : keys
}

/** Infinity: the keys do not change. */
export function keysChangeAtMs({ next }: SealedKeys): number {
  return next?.fromMs ?? Number.POSITIVE_INFINITY
}

/** Moves the changes of keys back by `byMs` after the clock was put back by as much. So both keys sign for as long as intended. */
export function shiftKeys({ next, ...current }: SealedKeys, byMs: number): SealedKeys {
  return { ...current, next: next === null ? null : { ...next, fromMs: next.fromMs - byMs } }
}

/** Begins to replace the current key. Drops an earlier replacement that is not finished. */
export function rotateKeys(keys: SealedKeys, sealed: string, nowMs: number): SealedKeys {
  return { ...keysAt(keys, nowMs), next: { sealed, fromMs: nowMs + OVERLAP_MS } }
}

/** Ends the time in which both keys sign: from now on, the new key signs alone. Returns null if no key is being replaced. */
export function endOverlap(keys: SealedKeys, nowMs: number): SealedKeys | null {
  const { next } = keysAt(keys, nowMs)
  return next === null ? null : onlyNext(keys, next)
}

/**
 * Returns the keys after a receiver accepted a delivery that was signed with `used`. If `used` is the next key, the receiver has switched
 * to it. Then the old key stops signing.
 */
export function keysAfterUse(keys: SealedKeys, used: string): SealedKeys {
  return keys.next?.sealed === used ? onlyNext(keys, keys.next) : keys
}

export function sealedTexts({ current, next, headers = {} }: SealedKeys): readonly string[] {
  return [current, next?.sealed, ...Object.values(headers)].filter((text) => text !== undefined)
}

/** Replaces encrypted texts. `replacements` maps old texts to new ones. Other texts stay. */
export function resealKeys(keys: SealedKeys, replacements: ReadonlyMap<string, string>): SealedKeys {
  const { current, next, headers, ...since } = keys
  const renewed = (text: string) => replacements.get(text) ?? text
  return {
    ...since,
    current: renewed(current),
    next: next === null ? null : { ...next, sealed: renewed(next.sealed) },
    ...(headers === undefined
      ? {}
      : { headers: Object.fromEntries(Object.entries(headers).map(([name, sealed]) => [name, renewed(sealed)])) }),
  }
}

/** Endpoints whose keys cannot be decrypted. The relay sends them nothing until their keys can be decrypted again. */
export interface LostKeys {
  /** The file or setting with the encryption key, which an operator must restore. */
  readonly where: string
  readonly endpoints: number
}
