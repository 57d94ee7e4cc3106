/**
 * The keys of an endpoint as they are kept: encrypted, for this endpoint only. While a key is being replaced the old one goes on signing the
 * header of the specification and the new one signs a header of its own, so a receiver that checks one header never refuses (CONTRACT, "Pushes
 * to endpoints").
 */
export interface SealedKeys {
  readonly current: string
  /** The key that takes the place of the current one at a time, epoch milliseconds; null: none does. */
  readonly next: { readonly sealed: string; readonly fromMs: number } | null
  /** The key that was replaced when a new one became the current one at once, as it did before there was a next one; null: there is none. */
  readonly previous: { readonly sealed: string; readonly untilMs: number } | null
}

/** How long two keys sign (FIELD: what receivers are used to). */
const OVERLAP_MS = 24 * 60 * 60 * 1000

export function onlyKey(sealed: string): SealedKeys {
  return { current: sealed, next: null, previous: null }
}

/** The keys as they stand at a time: the same object while nothing has run out. */
export function keysAt(keys: SealedKeys, nowMs: number): SealedKeys {
  const { next, previous } = keys
  if (next !== null && next.fromMs <= nowMs) return onlyKey(next.sealed)
  return previous !== null && previous.untilMs <= nowMs ? { ...keys, previous: null } : keys
}

/** When the keys will stand otherwise; infinite: as they are they stay. */
export function keysChangeAtMs({ next, previous }: SealedKeys): number {
  return Math.min(next?.fromMs ?? Number.POSITIVE_INFINITY, previous?.untilMs ?? Number.POSITIVE_INFINITY)
}

/** Begins to replace the key. One that was about to replace it, and that perhaps nobody has taken over yet, is forgotten. */
export function rotateKeys(keys: SealedKeys, sealed: string, nowMs: number): SealedKeys {
  return { ...keysAt(keys, nowMs), next: { sealed, fromMs: nowMs + OVERLAP_MS } }
}

/** Ends the overlap now: from then on the new key alone signs. Null: there is none. */
export function endOverlap(keys: SealedKeys, nowMs: number): SealedKeys | null {
  const { current, next, previous } = keysAt(keys, nowMs)
  return next === null && previous === null ? null : onlyKey(next?.sealed ?? current)
}

/** After a receiver took something that this key had signed: if it is the next one the receiver has changed, and the overlap is over. */
export function keysAfterUse(keys: SealedKeys, used: string): SealedKeys {
  return keys.next?.sealed === used ? onlyKey(used) : keys
}

/** Endpoints whose key cannot be opened: nothing is sent to them until it can. */
export interface LostKeys {
  /** What to restore. */
  readonly where: string
  readonly endpoints: number
}
