import { createHash } from 'node:crypto'
import { compareBytes } from '../text.ts'
import { type Audience, noAudience, uniteAudiences } from './audience.ts'
import { canonicalSighting, encodeContent, wholeSighting } from './content.ts'
import { groupOf, keyOf, type PollObservation, type PushObservation, type Sighting } from './observation.ts'

/**
 * A sighting, as it is stored. A *listing* is all that one observation reports about a group. Of listings that differ only in unknown members,
 * only the last-asked one is stored. If several were asked for at the same time, it is the bytewise greatest. docs/merge-proof.md proves that no
 * other listing is needed.
 */
export interface KeptSighting {
  readonly sighting: Sighting
  /** `encodeContent(sighting)`, which leaves out unknown members. */
  readonly content: string
  /**
   * Identifies the sighting's listing. Sightings of one listing are different entries. 0: the listing has no other sighting. Otherwise: a
   * 48-bit digest of the listing without unknown members, which is the same for equal listings of two observations.
   */
  readonly listing: number
  /** The sighting's position, from 0, among the sightings of its listing with the same key, the oldest first (DOMAIN 2.3). */
  readonly ordinal: number
  /** When the relay sent the last poll whose answer had the sighting, epoch milliseconds; 0 for a push. */
  readonly askedAtMs: number
  /** The sequence that the relay gave to the sighting when it learnt of it. */
  readonly sequence: number
  /** When the relay learnt of the sighting, epoch milliseconds; null: not known. Later polls do not change it. */
  readonly learntAtMs: number | null
  /** The endpoints that were sent the sighting. Has no influence on the entries. */
  readonly audience: Audience
}

/** A sighting of an observation that is to be recorded. An equal sighting may already be stored. */
export type ListedSighting = Omit<KeptSighting, 'sequence' | 'learntAtMs' | 'audience'>

/** Sightings with the same id differ at most in their unknown members and in the time at which they were asked for. */
export function sightingId(kept: ListedSighting): string {
  return `${kept.listing}/${kept.ordinal}/${kept.sighting.instant.text}/${kept.content}`
}

/** A digest of `sightingId`, 64 bits in base64url. The order answer is kept as such digests even when its bytes are gone. */
export function listedId(kept: ListedSighting): string {
  return createHash('sha256').update(sightingId(kept)).digest().subarray(0, LISTED_ID_BYTES).toString('base64url')
}

export const LISTED_ID_BYTES = 8

/** Returns the sightings in the order of the observation. */
export function sightingsOf(observation: PushObservation | PollObservation): readonly ListedSighting[] {
  if (observation.kind === 'push') return [{ ...ALONE, sighting: observation.sighting, content: observation.content }]
  // An answer with invalid items does not decide how often an entry occurs. So each sighting gets a listing of its own (DOMAIN 6.7).
  if (observation.skipped > 0) return observation.sightings.map((sighting) => alone(sighting, observation.askedAtMs))

  const groups = new Map<string, Sighting[]>()
  for (const sighting of observation.sightings.toReversed()) {
    const group = groupOf(sighting)
    groups.set(group, [...(groups.get(group) ?? []), sighting])
  }
  const listed = new Map<Sighting, ListedSighting>()
  for (const group of groups.values()) {
    for (const one of listTogether(group, observation.askedAtMs)) listed.set(one.sighting, one)
  }
  return observation.sightings.flatMap((sighting) => listed.get(sighting) ?? [])
}

const ALONE = { listing: 0, ordinal: 0, askedAtMs: 0 } as const

function alone(sighting: Sighting, askedAtMs: number): ListedSighting {
  return { ...ALONE, sighting, content: encodeContent(sighting), askedAtMs }
}

/** @param sightings The sightings of one group in one observation, oldest first. */
function listTogether(sightings: readonly Sighting[], askedAtMs: number): readonly ListedSighting[] {
  const [first] = sightings
  if (first === undefined || sightings.length === 1) return first === undefined ? [] : [alone(first, askedAtMs)]
  const seen = new Map<string, number>()
  const placed = sightings.map((sighting) => {
    const key = keyOf(sighting)
    const equal = JSON.stringify([key.atMs, key.location])
    const ordinal = seen.get(equal) ?? 0
    seen.set(equal, ordinal + 1)
    return { sighting, content: encodeContent(sighting), ordinal, askedAtMs }
  })
  const listing = digest48(placed.map(({ sighting, content, ordinal }) => `${ordinal} ${canonicalSighting(sighting, content)}`).sort())
  return placed.map((one) => ({ ...one, listing }))
}

/** Returns 48 bits of SHA-256, never 0. A `number` can represent them exactly, and they suffice to distinguish the listings of a group. */
function digest48(lines: readonly string[]): number {
  return createHash('sha256').update(lines.join('\n')).digest().readUIntBE(0, 6) || 1
}

export interface MergedSightings {
  /** All sightings after the merge. New ones have sequences from `nextSequence` on. */
  readonly kept: readonly KeptSighting[]
  /** The sightings that are new, or that a later poll has reported again. */
  readonly changed: readonly KeptSighting[]
}

/**
 * Adds the sightings of an observation to the stored ones. The result is the union of both. The order in which observations are added
 * influences only the sequences of sightings and the times at which the relay learnt of them.
 *
 * @param learntAtMs When the relay learnt of new sightings, epoch milliseconds; null: not known.
 */
export function mergeSightings(
  kept: readonly KeptSighting[],
  listed: readonly ListedSighting[],
  nextSequence: () => number,
  learntAtMs: number | null,
): MergedSightings {
  const [first] = listed
  if (kept.length === 0 && listed.length === 1 && first !== undefined) {
    const only = [{ ...first, sequence: nextSequence(), learntAtMs, audience: noAudience }]
    return { kept: only, changed: only }
  }
  const byId = new Map(kept.map((one) => [sightingId(one), one]))
  const changed = new Map<string, KeptSighting>()
  const outranks = rankListings(byId, listed)
  for (const one of listed) {
    const id = sightingId(one)
    const known = byId.get(id)
    if (known !== undefined && !outranks(one, known)) continue
    const now =
      known === undefined
        ? { ...one, sequence: nextSequence(), learntAtMs, audience: noAudience }
        : { ...one, sequence: known.sequence, learntAtMs: known.learntAtMs, audience: known.audience }
    byId.set(id, now)
    changed.set(id, now)
  }
  return { kept: [...byId.values()], changed: [...changed.values()] }
}

/**
 * Returns a function that decides whether a listed sighting replaces the stored one with the same id. A listing replaces another one
 * completely or not at all, so the verdict about its first sighting holds for all its sightings.
 */
function rankListings(
  kept: ReadonlyMap<string, KeptSighting>,
  listed: readonly ListedSighting[],
): (one: ListedSighting, known: KeptSighting) => boolean {
  const verdicts = new Map<number, boolean>()
  return (one, known) => {
    if (one.askedAtMs !== known.askedAtMs) return one.askedAtMs > known.askedAtMs
    if (one.listing === 0) return compareWhole([one], [known]) > 0
    const verdict = verdicts.get(one.listing)
    if (verdict !== undefined) return verdict
    const together = listed.filter(({ listing }) => listing === one.listing)
    const outranks =
      compareWhole(
        together,
        together.flatMap((other) => kept.get(sightingId(other)) ?? []),
      ) > 0
    verdicts.set(one.listing, outranks)
    return outranks
  }
}

/** Compares listings that differ only in unknown members, bytewise and sighting by sighting. */
function compareWhole(a: readonly ListedSighting[], b: readonly ListedSighting[]): number {
  if ([...a, ...b].every(({ sighting }) => sighting.extra.length === 0)) return 0
  return compareBytes(wholeListing(a), wholeListing(b))
}

function wholeListing(listing: readonly ListedSighting[]): string {
  const whole = listing.map((one) => ({ id: sightingId(one), text: wholeSighting(one.sighting, one.content) }))
  return whole
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .map(({ text }) => text)
    .join('\n')
}

export interface United {
  readonly kept: readonly KeptSighting[]
  /** The sightings that more than one of the parcels has. */
  readonly shared: readonly KeptSighting[]
  /** The sequences that shared sightings had and no longer have, each with the sequence that stays. */
  readonly renumbered: readonly Renumbered[]
}

export interface Renumbered {
  readonly from: number
  readonly to: number
}

/**
 * Unites the sightings of several parcels. If more than one parcel has a sighting, the united sighting has the content that was asked for last
 * and the audiences of all. It has the lowest sequence, and `learntAtMs` of the sighting with that sequence.
 */
export function uniteSightings(parts: readonly (readonly KeptSighting[])[]): United {
  const byId = new Map<string, KeptSighting>()
  const shared = new Set<string>()
  const given = new Map<number, string>()
  for (const part of parts) {
    const outranks = rankListings(byId, part)
    for (const kept of part) {
      const id = sightingId(kept)
      const known = byId.get(id)
      if (known === undefined) byId.set(id, kept)
      else {
        shared.add(id)
        const { sequence, learntAtMs } = kept.sequence < known.sequence ? kept : known
        const audience = uniteAudiences(known.audience, kept.audience)
        given.set(Math.max(kept.sequence, known.sequence), id)
        byId.set(id, { ...(outranks(kept, known) ? kept : known), sequence, learntAtMs, audience })
      }
    }
  }
  const renumbered = [...given].map(([from, id]) => ({ from, to: byId.get(id)?.sequence ?? from }))
  return { kept: [...byId.values()], shared: [...shared].flatMap((id) => byId.get(id) ?? []), renumbered }
}
