/**
 * The stored keys of an endpoint, each encrypted for this endpoint alone. While a key is being replaced, the old one signs the
 * specification's header and the new one a header of its own, so a receiver that checks one header never refuses (CONTRACT, "Pushes to
 * endpoints").
 */
export interface SealedKeys {
  readonly current: string
  /** The key that replaces the current one at `fromMs`, epoch milliseconds; null: there is none. */
  readonly next: { readonly sealed: string; readonly fromMs: number } | null
  /** The key that was replaced at once and still signs until `untilMs`, as stores of earlier versions hold it; null: there is none. */
  readonly previous: { readonly sealed: string; readonly untilMs: number } | null
}

/** How long both keys sign; receivers are used to a day. */
const OVERLAP_MS = 24 * 60 * 60 * 1000

/** Keys with nothing being replaced. */
export function onlyKey(sealed: string): SealedKeys {
  return { current: sealed, next: null, previous: null }
}

/** The keys as they stand at `nowMs`. Returns the same object unless something has run out. */
export function keysAt(keys: SealedKeys, nowMs: number): SealedKeys {
  const { next, previous } = keys
  if (next !== null && next.fromMs <= nowMs) return onlyKey(next.sealed)
  return previous !== null && previous.untilMs <= nowMs ? { ...keys, previous: null } : keys
}

/** When the keys change next, epoch milliseconds; infinite: never. */
export function keysChangeAtMs({ next, previous }: SealedKeys): number {
  return Math.min(next?.fromMs ?? Number.POSITIVE_INFINITY, previous?.untilMs ?? Number.POSITIVE_INFINITY)
}

/** The keys after the clock was put back: what is due moves back with it, so that the overlap lasts as long as it was to. */
export function shiftKeys({ current, next, previous }: SealedKeys, byMs: number): SealedKeys {
  return {
    current,
    next: next === null ? null : { ...next, fromMs: next.fromMs - byMs },
    previous: previous === null ? null : { ...previous, untilMs: previous.untilMs - byMs },
  }
}

/** Starts to replace the current key. An earlier replacement that is still pending is dropped. */
export function rotateKeys(keys: SealedKeys, sealed: string, nowMs: number): SealedKeys {
  return { ...keysAt(keys, nowMs), next: { sealed, fromMs: nowMs + OVERLAP_MS } }
}

/** Ends the overlap now: from now on the new key signs alone. Null: no key is being replaced. */
export function endOverlap(keys: SealedKeys, nowMs: number): SealedKeys | null {
  const { current, next, previous } = keysAt(keys, nowMs)
  return next === null && previous === null ? null : onlyKey(next?.sealed ?? current)
}

/**
 * The keys after a receiver accepted a delivery signed with `used`. If that is the next key, the receiver has switched and the overlap
 * ends.
 */
export function keysAfterUse(keys: SealedKeys, used: string): SealedKeys {
  return keys.next?.sealed === used ? onlyKey(used) : keys
}

/** Endpoints whose key cannot be decrypted: nothing is sent to them until it can. */
export interface LostKeys {
  /** The file or setting to restore. */
  readonly where: string
  readonly endpoints: number
}
