import { createHmac } from 'node:crypto'
import { identifiersOf, type PollObservation, type PushObservation } from './observation.ts'

/** Records that an identifier was erased. It is stored under a mark that does not reveal the identifier (`markOf`). Times: epoch milliseconds. */
export interface Tombstone {
  /** The id of the erased parcel. No other parcel gets this id. */
  readonly parcelId: number
  readonly erasedAtMs: number
}

/** A tombstone as it is stored. */
export interface MarkedTombstone extends Tombstone {
  readonly mark: string
}

/** The name under which an at-rest key seals the key of the tombstones. */
export const TOMBSTONE_SEAL = 'tombstones'

/** `sealedKey`: the key of the marks, encrypted with an at-rest key; null: there is no key yet. */
export interface KeptTombstones {
  readonly sealedKey: string | null
  readonly tombstones: readonly MarkedTombstone[]
}

/** Returns the `kept` tombstones that are missing in `stored`, or have an earlier time of erasure there. */
export function missedTombstones(kept: readonly MarkedTombstone[], stored: readonly MarkedTombstone[]): readonly MarkedTombstone[] {
  const erasedAtMs = new Map(stored.toSorted((a, b) => a.erasedAtMs - b.erasedAtMs).map((one) => [one.mark, one.erasedAtMs]))
  const newest = new Map<string, MarkedTombstone>()
  for (const one of kept) if (one.erasedAtMs >= (newest.get(one.mark)?.erasedAtMs ?? 0)) newest.set(one.mark, one)
  return [...newest.values()].filter((one) => one.erasedAtMs > (erasedAtMs.get(one.mark) ?? Number.NEGATIVE_INFINITY))
}

/** Returns what two sources know together, the tombstones of `first` before those that only `second` has, or has with a later time. */
export function unitedTombstones(first: KeptTombstones | null, second: KeptTombstones | null): KeptTombstones {
  const [known, more] = [first?.tombstones ?? [], second?.tombstones ?? []]
  return { sealedKey: first?.sealedKey ?? second?.sealedKey ?? null, tombstones: [...known, ...missedTombstones(more, known)] }
}

/** Whether the files of the store may still contain erased data. `pending`: they may, and the sentence `because` says why. */
export type StorageState = { readonly state: 'clean' } | { readonly state: 'pending'; readonly because: string }

/** An identifier of an erased parcel that the relay learnt only after the erasure. */
export interface ErasedName extends Tombstone {
  readonly value: string
}

export type Tombstones = ReadonlyMap<string, Tombstone>

/** How long after an erasure the erased identifiers are refused, milliseconds. Null: forever, because the carrier never reuses an identifier. */
export interface ErasureRules {
  readonly identifierReuseAfterMs: number | null
}

/** Returns the mark of an identifier's tombstone: an HMAC, so that nobody without the key can find the identifier by trying all of them. */
export function markOf(key: Uint8Array, identifier: string): string {
  return createHmac('sha256', key).update(identifier).digest('base64url')
}

/**
 * Returns the tombstones of identifiers in one order, so that two transactions that save them cannot wait for each other. A missing key is a bug,
 * because the key is made before anything is erased.
 */
export function tombstonesOf(key: Uint8Array | null, names: readonly ErasedName[]): readonly MarkedTombstone[] {
  if (key === null) throw new Error('identifiers are erased without a key for their tombstones')
  const marked = names.map(({ value, parcelId, erasedAtMs }) => ({ mark: markOf(key, value), parcelId, erasedAtMs }))
  return marked.sort((a, b) => (a.mark < b.mark ? -1 : 1))
}

/**
 * Whether an event at `atMs` (epoch milliseconds) is about the erased parcel. If it happened more than `identifierReuseAfterMs` after the
 * erasure, it is about a new parcel, to which the carrier has given the same identifier.
 */
export function isOfErased({ erasedAtMs }: Tombstone, atMs: number, { identifierReuseAfterMs }: ErasureRules): boolean {
  return identifierReuseAfterMs === null || atMs <= erasedAtMs + identifierReuseAfterMs
}

/** An observation without erased identifiers. `erased`: it is about an erased parcel. `names`: identifiers to be erased too. */
export type Unerased<Observation> =
  | { readonly kind: 'living'; readonly observation: Observation }
  | { readonly kind: 'erased'; readonly names: readonly ErasedName[] }

export interface ErasureLook {
  /** When the relay learns of the observation, epoch milliseconds. The carrier may date an event ahead, so the earlier of the two times counts. */
  readonly nowMs: number
  readonly tombstones: Tombstones
  readonly rules: ErasureRules
  /** Whether an existing parcel has this identifier. */
  readonly isLiving: (value: string) => boolean
}

/**
 * Removes erased identifiers from a push. If the push also names an existing parcel, it is recorded for that parcel. Otherwise the push is
 * about the erased parcel.
 */
export function withoutErasedOfPush(push: PushObservation, { nowMs, tombstones, rules, isLiving }: ErasureLook): Unerased<PushObservation> {
  const atMs = Math.min(push.sighting.instant.atMs, nowMs)
  const { erased, others } = partOf(push.trackingIds, tombstones, (tombstone) => isOfErased(tombstone, atMs, rules))
  const [first] = erased
  if (first === undefined) return { kind: 'living', observation: push }
  if (others.some(isLiving)) return { kind: 'living', observation: { ...push, trackingIds: others } }
  return { kind: 'erased', names: others.map((value) => ({ value, ...first })) }
}

/**
 * Removes erased identifiers and the entries of erased parcels from an answer of the carrier. If something was removed, the answer decides
 * neither how often an entry occurs nor the order of entries. Its bytes are not stored, because they contain erased identifiers.
 */
export function withoutErasedOfPoll(poll: PollObservation, { nowMs, tombstones, rules, isLiving }: ErasureLook): Unerased<PollObservation> {
  const names = identifiersOf(poll)
  if (!names.some((value) => tombstones.has(value))) return { kind: 'living', observation: poll }
  const isErased = (tombstone: Tombstone) =>
    poll.sightings.every(({ instant }) => isOfErased(tombstone, Math.min(instant.atMs, nowMs), rules))
  const { erased, others } = partOf(names, tombstones, isErased)
  const [first] = erased
  const living = first === undefined ? others : others.filter(isLiving)
  const asked = living.find((value) => value === poll.asked) ?? living[0]
  if (asked === undefined) return { kind: 'erased', names: first === undefined ? [] : others.map((value) => ({ value, ...first })) }
  const reused = others.flatMap((value) => tombstones.get(value) ?? [])
  const sightings = poll.sightings.filter(
    ({ instant }) => !reused.some((tombstone) => isOfErased(tombstone, Math.min(instant.atMs, nowMs), rules)),
  )
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

export const ERASED_WORD = '(erased)'
