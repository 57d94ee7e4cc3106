import { createHmac } from 'node:crypto'
import { identifiersOf, type PollObservation, type PushObservation } from './observation.ts'

/** The trace of an erased identifier. It is stored under a mark, which does not reveal the identifier. Times are epoch milliseconds. */
export interface Tombstone {
  /** The erased parcel. No other parcel gets its id. */
  readonly parcelId: number
  readonly erasedAtMs: number
}

/** A tombstone as it is stored. */
export interface MarkedTombstone extends Tombstone {
  readonly mark: string
}

/** Tombstones, and the key of their marks, sealed by an at-rest key; null: there is no key. */
export interface KeptTombstones {
  readonly sealedKey: string | null
  readonly tombstones: readonly MarkedTombstone[]
}

/** Tombstones that a store does not have, or has in an older form. */
export function missedTombstones(kept: readonly MarkedTombstone[], stored: readonly MarkedTombstone[]): readonly MarkedTombstone[] {
  const erasedAtMs = new Map(stored.map((one) => [one.mark, one.erasedAtMs]))
  const newest = new Map<string, MarkedTombstone>()
  for (const one of kept) if (one.erasedAtMs >= (newest.get(one.mark)?.erasedAtMs ?? 0)) newest.set(one.mark, one)
  return [...newest.values()].filter((one) => one.erasedAtMs > (erasedAtMs.get(one.mark) ?? Number.NEGATIVE_INFINITY))
}

/** An identifier that was found to belong to an erased parcel after the erasure. */
export interface ErasedName extends Tombstone {
  readonly value: string
}

/** The tombstones of identifiers, by identifier. */
export type Tombstones = ReadonlyMap<string, Tombstone>

/** How long after an erasure its identifiers are refused. Null: forever, because the carrier never gives an identifier again. */
export interface ErasureRules {
  readonly identifierReuseAfterMs: number | null
}

/** The mark of an identifier's tombstone. It is an HMAC, so that nobody without the key can find an identifier by trying. */
export function markOf(key: Uint8Array, identifier: string): string {
  return createHmac('sha256', key).update(identifier).digest('base64url')
}

/**
 * Whether an event of this time, epoch milliseconds, is about the erased parcel. A later event is about a new parcel with the same
 * identifier.
 */
export function isOfErased({ erasedAtMs }: Tombstone, atMs: number, { identifierReuseAfterMs }: ErasureRules): boolean {
  return identifierReuseAfterMs === null || atMs <= erasedAtMs + identifierReuseAfterMs
}

/** An observation without erased identifiers. `erased`: it is about an erased parcel. Only `names`, its other identifiers, may be kept. */
export type Unerased<Observation> =
  | { readonly kind: 'living'; readonly observation: Observation }
  | { readonly kind: 'erased'; readonly names: readonly ErasedName[] }

export interface ErasureLook {
  readonly tombstones: Tombstones
  readonly rules: ErasureRules
  /** Whether a parcel has this identifier. */
  readonly isLiving: (value: string) => boolean
}

/**
 * Removes erased identifiers from a push. If the push also names a living parcel, it is recorded for that parcel, without the erased
 * identifiers. Otherwise the push is about the erased parcel.
 */
export function withoutErasedOfPush(push: PushObservation, { tombstones, rules, isLiving }: ErasureLook): Unerased<PushObservation> {
  const { atMs } = push.sighting.instant
  const { erased, others } = partOf(push.trackingIds, tombstones, (tombstone) => isOfErased(tombstone, atMs, rules))
  const [first] = erased
  if (first === undefined) return { kind: 'living', observation: push }
  if (others.some(isLiving)) return { kind: 'living', observation: { ...push, trackingIds: others } }
  return { kind: 'erased', names: others.map((value) => ({ value, ...first })) }
}

/**
 * Removes erased identifiers from an answer of the carrier, and the entries that are about an erased parcel. The answer then decides
 * neither multiplicity nor order, and its bytes are not kept, because they name what was erased.
 */
export function withoutErasedOfPoll(poll: PollObservation, { tombstones, rules, isLiving }: ErasureLook): Unerased<PollObservation> {
  const names = identifiersOf(poll)
  if (!names.some((value) => tombstones.has(value))) return { kind: 'living', observation: poll }
  const isErased = (tombstone: Tombstone) => poll.sightings.every(({ instant }) => isOfErased(tombstone, instant.atMs, rules))
  const { erased, others } = partOf(names, tombstones, isErased)
  const [first] = erased
  const living = first === undefined ? others : others.filter(isLiving)
  const asked = living.find((value) => value === poll.asked) ?? living[0]
  if (asked === undefined) return { kind: 'erased', names: first === undefined ? [] : others.map((value) => ({ value, ...first })) }
  const reused = others.flatMap((value) => tombstones.get(value) ?? [])
  const sightings = poll.sightings.filter(({ instant }) => !reused.some((tombstone) => isOfErased(tombstone, instant.atMs, rules)))
  const trackingIds = poll.trackingIds.filter((value) => others.includes(value))
  return { kind: 'living', observation: { ...poll, asked, trackingIds, sightings, skipped: poll.skipped + 1, isPartial: true } }
}

function partOf(
  names: readonly string[],
  tombstones: Tombstones,
  isErased: (tombstone: Tombstone) => boolean,
): { readonly erased: readonly Tombstone[]; readonly others: readonly string[] } {
  const erased: Tombstone[] = []
  const others: string[] = []
  for (const value of names) {
    const tombstone = tombstones.get(value)
    if (tombstone !== undefined && isErased(tombstone)) erased.push(tombstone)
    else others.push(value)
  }
  return { erased, others }
}
