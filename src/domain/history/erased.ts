import { createHmac } from 'node:crypto'
import { identifiersOf, type PollObservation, type PushObservation } from './observation.ts'

/** What is left of an erased identifier. It is kept under a mark, which does not reveal the identifier. Times are epoch milliseconds. */
export interface Tombstone {
  /** The parcel that was erased. No other parcel gets its id. */
  readonly parcelId: number
  readonly erasedAtMs: number
}

/** A tombstone as it is stored. */
export interface MarkedTombstone extends Tombstone {
  readonly mark: string
}

/** Tombstones, and the key of their marks as an at-rest key has sealed it; null: there is no key. */
export interface KeptTombstones {
  readonly sealedKey: string | null
  readonly tombstones: readonly MarkedTombstone[]
}

/** The tombstones that are kept elsewhere and are missing in a store, or are older there. */
export function missedTombstones(kept: readonly MarkedTombstone[], stored: readonly MarkedTombstone[]): readonly MarkedTombstone[] {
  const erasedAtMs = new Map(stored.map((one) => [one.mark, one.erasedAtMs]))
  const newest = new Map<string, MarkedTombstone>()
  for (const one of kept) if (one.erasedAtMs >= (newest.get(one.mark)?.erasedAtMs ?? 0)) newest.set(one.mark, one)
  return [...newest.values()].filter((one) => one.erasedAtMs > (erasedAtMs.get(one.mark) ?? Number.NEGATIVE_INFINITY))
}

/** An identifier that belonged to an erased parcel, although nobody knew it when the parcel was erased. */
export interface ErasedName extends Tombstone {
  readonly value: string
}

/** The tombstones of identifiers, by identifier. */
export type Tombstones = ReadonlyMap<string, Tombstone>

/** How long after an erasure its identifiers are refused. Null: forever, because the carrier never gives one again. */
export interface ErasureRules {
  readonly identifierReuseAfterMs: number | null
}

/** The mark under which the tombstone of an identifier is kept: an HMAC, so that nobody without the key can try identifiers. */
export function markOf(key: Uint8Array, identifier: string): string {
  return createHmac('sha256', key).update(identifier).digest('base64url')
}

/** Whether an event of this time, epoch milliseconds, is about the erased parcel. A later one is about a new parcel with its identifier. */
export function isOfErased({ erasedAtMs }: Tombstone, atMs: number, { identifierReuseAfterMs }: ErasureRules): boolean {
  return identifierReuseAfterMs === null || atMs <= erasedAtMs + identifierReuseAfterMs
}

/**
 * An observation without erased identifiers. `erased`: it is about an erased parcel, and nothing of it may be kept but `names`, which are
 * its other identifiers.
 */
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
 * Takes erased identifiers out of a push. If it names a living parcel too, it is recorded for that one, which is never tied to them.
 * Otherwise it is about the erased parcel.
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
 * Takes erased identifiers out of an answer of the carrier, and the entries that are about an erased parcel. Such an answer decides neither
 * multiplicity nor order, and its bytes are not kept, because they name what was erased.
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
