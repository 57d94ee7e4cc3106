import type { FeedEvent } from '../../core/domain/delivery/feed-entry.ts'
import { audienceOf, fullAudience } from '../../core/domain/history/audience.ts'
import { encodeContent } from '../../core/domain/history/content.ts'
import { deriveEntries, type Entry, instantsTie, orderHistory } from '../../core/domain/history/history.ts'
import { type IdentifierState, isSameEntry, type ParcelState, repeatedOf } from '../../core/domain/history/parcel-state.ts'
import { ANSWERS_MAX, answerId, type KeptAnswer, keepAnswers, presentParcel } from '../../core/domain/history/pull-response.ts'
import { type KeptSighting, sightingId } from '../../core/domain/history/sightings.ts'
import { compareBytes, digest } from '../../core/domain/text.ts'
import { compareHistories, type HistoryChange, type ServedParcel } from './compare-histories.rules.ts'
import { addAnswers, type Evidence, type ReadAnswer, type ShownSighting, type StoredAnswer } from './evidence.rules.ts'

/** All that the store contains about a parcel, except its pushes. */
export interface StoredParcel {
  readonly state: ParcelState
  readonly identifiers: readonly IdentifierState[]
  readonly sightings: readonly KeptSighting[]
  readonly answers: readonly StoredAnswer[]
}

/** The writes that make the store agree with the derived data. */
export interface ParcelCorrection {
  readonly state: ParcelState
  /** Whether the newest entry or the number of entries has changed. Then the next poll must be planned again. */
  readonly isRescheduled: boolean
  /** The sightings to delete, before those in `saved` are written. */
  readonly dropped: readonly KeptSighting[]
  readonly saved: readonly KeptSighting[]
  readonly identifiers: readonly IdentifierState[]
  readonly answers: readonly { readonly answer: KeptAnswer; readonly decidesOrder: boolean }[]
  readonly feed: readonly FeedEvent[]
  /** From this sequence on the parcel is known as corrected (DOMAIN 11.4). Null: what it has answered at any time stays the same. */
  readonly correctedAt: number | null
}

export interface RebuiltParcel {
  readonly parcelId: number
  readonly source: 'bytes' | 'sightings'
  readonly isDamaged: boolean
  /** Identifiers that the parcel's bytes name but that belong to other parcels. They stay with those parcels. */
  readonly conflicts: readonly string[]
  /** A digest of the stored data, and a digest of the derived data. They are equal if nothing needs a correction. */
  readonly stored: string
  readonly derived: string
  readonly changes: readonly HistoryChange[]
  /** Null: the store already agrees with the derived data. */
  readonly correction: ParcelCorrection | null
}

export interface RebuildContext {
  /** The evidence from the bytes of the parcel's pushes. `rebuildParcel` adds the answers to it. */
  readonly evidence: Evidence
  /** Identifiers that the parcel's bytes name but that belong to other parcels. */
  readonly elsewhere: ReadonlyMap<string, IdentifierState>
  /** The last sequence before the bytes were read. Later sightings may come from bytes that were not read, so they stay as they are. */
  readonly knownTo: number
  /** Returns the next unused sequence, for new sightings and events of the feed. */
  readonly nextSequence: () => number
}

/**
 * Derives a parcel's history again, by the rules for recording observations (DOMAIN 2): from the bytes of its pushes and answers or, if some
 * bytes are gone, from its stored sightings.
 *
 * Sequences, audiences and the times at which the relay learnt of sightings cannot be derived, so they stay. Endpoints are not sent the
 * changes: new sightings are saved as already sent.
 */
export function rebuildParcel(stored: StoredParcel, context: RebuildContext): RebuiltParcel {
  const { evidence, elsewhere, nextSequence } = context
  const { parcelId } = stored.state
  const answers = addAnswers(evidence, stored.answers)
  const { source, sightings } = deriveSightings(stored, context)
  const before = viewOf(
    stored.sightings,
    storedOrder(stored, answers),
    stored.answers.map(({ answer }) => answer),
    stored.identifiers,
  )
  const { identifiers, conflicts } = deriveIdentifiers(stored, evidence, elsewhere, source)
  const order = keepAnswers(answers.map(({ answer }) => answer)).order
  const orderIds = answers.find(({ answer }) => order !== null && answerId(answer) === answerId(order))?.listed ?? []
  const isSame = sightings === stored.sightings
  const told = isSame ? sightings : withAudience(sightings, deriveEntries(sightings))
  const after = viewOf(
    told,
    orderIds,
    answers.map(({ answer }) => answer),
    identifiers,
    isSame ? before.entries : null,
  )
  const changes = compareHistories(before, after)
  const facts = deriveFacts(stored.state, after.entries, told)
  const state = { ...stored.state, ...facts }
  const names = Object.keys(facts)
  const ordered = answers.map(({ answer }) => ({ answer, decidesOrder: order !== null && answerId(answer) === answerId(order) }))
  const derivedRows = { state, identifiers, answers: ordered, sightings: told }
  const rows = textOf(stored.sightings)
  const storedDigest = digestOf(stored, names, rows)
  const derivedDigest = digestOf(derivedRows, names, isSame ? rows : textOf(told))
  const correction =
    storedDigest === derivedDigest
      ? null
      : toldCorrection(correctionOf(stored, derivedRows), feedOf(parcelId, changes, nextSequence), nextSequence)
  return { parcelId, source, isDamaged: evidence.isDamaged, conflicts, stored: storedDigest, derived: derivedDigest, changes, correction }
}

/** A correction of what is not shown now, such as an entry that was reworded since, is no event of the feed, but was shown once. */
function toldCorrection(
  correction: ReturnType<typeof correctionOf>,
  feed: readonly FeedEvent[],
  nextSequence: () => number,
): ParcelCorrection {
  const [first] = feed
  const isSilent = first === undefined && correction.dropped.length + correction.saved.length > 0
  return { ...correction, feed, correctedAt: first?.sequence ?? (isSilent ? nextSequence() : null) }
}

interface Rows {
  readonly state: ParcelState
  readonly identifiers: readonly IdentifierState[]
  readonly answers: readonly { readonly answer: KeptAnswer; readonly decidesOrder: boolean }[]
  readonly sightings: readonly KeptSighting[]
}

/**
 * Returns the sightings as the bytes contain them. If bytes may be missing, returns the stored sightings.
 *
 * A push whose bytes were deleted keeps its row in the inbox (`isPartial`). An old answer may be deleted while its sightings stay.
 * Two signs of that are a language with the maximum of stored answers, and a stored sighting of a poll that no bytes show.
 */
function deriveSightings(
  stored: StoredParcel,
  { evidence, knownTo, nextSequence }: RebuildContext,
): { readonly source: RebuiltParcel['source']; readonly sightings: readonly KeptSighting[] } {
  const fromSightings = () => ({ source: 'sightings', sightings: encodedAnew(stored.sightings) }) as const
  if (evidence.isPartial || evidence.isDamaged) return fromSightings()
  const recent = stored.sightings.filter(({ sequence }) => sequence > knownTo)
  const earlier = recent.length === 0 ? stored.sightings : stored.sightings.filter(({ sequence }) => sequence <= knownTo)
  const { matched, unproven, missing } = matchSightings(earlier, without(evidence.sightings, recent))
  const isAllShown = unproven.length === 0 && missing.length === 0 && matched.every(({ before, after }) => before === after)
  if (isAllShown) return { source: 'bytes', sightings: stored.sightings }
  if (mayLackAnswers(stored.answers) || unproven.some(({ sighting }) => sighting.source === 'poll')) return fromSightings()
  const fresh = missing.map((one) => ({ ...one, sequence: nextSequence(), audience: fullAudience }))
  return { source: 'bytes', sightings: [...recent, ...matched.map(({ after }) => after), ...fresh] }
}

function without(shown: Evidence['sightings'], recent: readonly KeptSighting[]): Evidence['sightings'] {
  if (recent.length === 0) return shown
  const gone = new Set(recent.map(sightingId))
  return new Map([...shown].filter(([id]) => !gone.has(id)))
}

/** Older answers may have been deleted if a language has `ANSWERS_MAX` of them. */
function mayLackAnswers(answers: readonly StoredAnswer[]): boolean {
  return [...Map.groupBy(answers, ({ answer }) => answer.language).values()].some((inLanguage) => inLanguage.length >= ANSWERS_MAX)
}

/** Returns the same list if no content differs. */
function encodedAnew(sightings: readonly KeptSighting[]): readonly KeptSighting[] {
  const anew = sightings.map((kept) => {
    const content = encodeContent(kept.sighting)
    return content === kept.content ? kept : { ...kept, content }
  })
  return anew.every((kept, at) => kept === sightings[at]) ? sightings : anew
}

/** Marks every unsent entry as sent, so that the next observation of the same second does not send it. */
function withAudience(sightings: readonly KeptSighting[], entries: readonly Entry[]): readonly KeptSighting[] {
  const unsent = new Set(entries.filter(({ members }) => audienceOf(members).kind === 'nobody').map(({ sequence }) => sequence))
  if (unsent.size === 0) return sightings
  return sightings.map((kept) => (unsent.has(kept.sequence) ? { ...kept, audience: fullAudience } : kept))
}

function storedOrder({ answers }: StoredParcel, read: readonly ReadAnswer[]): readonly string[] {
  const deciding = answers.find(({ decidesOrder }) => decidesOrder)
  return read.find(({ answer }) => deciding !== undefined && answerId(answer) === answerId(deciding.answer))?.listed ?? []
}

function viewOf(
  sightings: readonly KeptSighting[],
  order: readonly string[],
  answers: readonly KeptAnswer[],
  identifiers: readonly IdentifierState[],
  derived: readonly Entry[] | null = null,
): ServedParcel {
  const entries = derived ?? deriveEntries(sightings)
  const trackingIds = identifiers.filter(({ isTrackingId }) => isTrackingId).map(({ value }) => value)
  const served = presentParcel(orderHistory(entries, instantsTie(entries) ? order : []), answers, trackingIds)
  return { ...served, identifiers: identifiers.map(({ value }) => value).sort() }
}

/**
 * Returns the identifiers that the parcel should have. An identifier that no bytes name stays, because apps may ask for it. But it is no
 * tracking id if the history was derived from bytes.
 */
function deriveIdentifiers(
  { state, identifiers }: StoredParcel,
  { trackingIds }: Evidence,
  elsewhere: RebuildContext['elsewhere'],
  source: RebuiltParcel['source'],
): { readonly identifiers: readonly IdentifierState[]; readonly conflicts: readonly string[] } {
  const known = new Set(identifiers.map(({ value }) => value))
  const lacking = [...trackingIds].filter((value) => !known.has(value))
  const added = lacking.filter((value) => !elsewhere.has(value))
  const kept = identifiers.map((one) => {
    const isTrackingId = trackingIds.has(one.value) || (source === 'sightings' && one.isTrackingId)
    return isTrackingId === one.isTrackingId ? one : { ...one, isTrackingId }
  })
  const { parcelId } = state
  return {
    identifiers: [...kept, ...added.map((value) => ({ value, parcelId, isTrackingId: true }))],
    conflicts: lacking.filter((value) => elsewhere.has(value)),
  }
}

/** Returns the members of a parcel's state that repeat what its entries and sightings say. */
function deriveFacts(state: ParcelState, entries: readonly Entry[], sightings: readonly KeptSighting[]) {
  const pushed = sightings.filter(({ sighting }) => sighting.source === 'push').map(({ sighting }) => sighting.instant.atMs)
  return {
    ...repeatedOf(state, entries, 0, learntAtMs(entries[0], state)),
    firstPushedAtMs: pushed.length === 0 ? null : pushed.reduce((first, atMs) => Math.min(first, atMs)),
  } satisfies Partial<ParcelState>
}

/** If the latest entry is the same as before, the time at which the relay learnt of it stays. */
function learntAtMs(newest: Entry | undefined, { latest }: ParcelState): number {
  if (newest === undefined || isSameEntry(newest, latest)) return Number.POSITIVE_INFINITY
  return newest.members.reduce((first, one) => Math.min(first, one.learntAtMs ?? first), Number.POSITIVE_INFINITY)
}

function textOf(sightings: readonly KeptSighting[]): string {
  const inOrder = sightings.toSorted((a, b) => a.sequence - b.sequence)
  return inOrder.map(sightingRow).join('\n')
}

/** `facts`: the members of the state that are derived. */
function digestOf({ state, identifiers, answers }: Rows, facts: readonly string[], sightings: string): string {
  const members: Readonly<Record<string, unknown>> = { ...state }
  const lines = [
    JSON.stringify(facts.map((name) => members[name])),
    ...identifiers.map(({ value, isTrackingId }) => `${value} ${isTrackingId}`).sort(),
    ...answers.map(({ answer, decidesOrder }) => `${answerRow(answer)} ${decidesOrder}`).sort(),
    sightings,
  ]
  return digest(lines.join('\n'))
}

function answerRow({ language, digest: bytes, askedAtMs, entryCount, flawed, trackingIds, distributionType, extra }: KeptAnswer): string {
  return JSON.stringify([language, bytes, askedAtMs, entryCount, flawed, trackingIds, distributionType, extra])
}

function sightingRow({ sighting, content, listing, ordinal, askedAtMs, sequence, learntAtMs, audience }: KeptSighting): string {
  const sent = 'tellings' in audience ? `${audience.kind} ${JSON.stringify(audience.tellings)}` : audience.kind
  const extra = sighting.extra.length === 0 ? '' : JSON.stringify(sighting.extra)
  return `${sequence} ${sighting.instant.text} ${listing} ${ordinal} ${askedAtMs} ${learntAtMs} ${sent} ${extra} ${content}`
}

function correctionOf(stored: StoredParcel, derived: Rows): Omit<ParcelCorrection, 'feed' | 'correctedAt'> {
  const rows = new Set(stored.sightings.map(sightingRow))
  const wanted = new Set(derived.sightings.map(sightingRow))
  const dropped = stored.sightings.filter((kept) => !wanted.has(sightingRow(kept)))
  // Rows are deleted by their sequence. If two rows wrongly have the same sequence, both are deleted, and the right one is saved again.
  const gone = new Set(dropped.map(({ sequence }) => sequence))
  const isStored = new Set(stored.identifiers.map(({ value, isTrackingId }) => `${value} ${isTrackingId}`))
  const answered = new Set(stored.answers.map(({ answer, decidesOrder }) => `${answerRow(answer)} ${decidesOrder}`))
  const [was, is] = [stored.state, derived.state]
  return {
    state: is,
    isRescheduled: JSON.stringify([was.entryCount, was.latest]) !== JSON.stringify([is.entryCount, is.latest]),
    dropped,
    saved: derived.sightings.filter((kept) => !rows.has(sightingRow(kept)) || gone.has(kept.sequence)),
    identifiers: derived.identifiers.filter(({ value, isTrackingId }) => !isStored.has(`${value} ${isTrackingId}`)),
    answers: derived.answers.filter(({ answer, decidesOrder }) => !answered.has(`${answerRow(answer)} ${decidesOrder}`)),
  }
}

/** Returns the feed events that report the changes. A removed entry needs no event of its own, because each event has the whole history. */
function feedOf(parcelId: number, changes: readonly HistoryChange[], nextSequence: () => number): readonly FeedEvent[] {
  const events: FeedEvent[] = []
  for (const { kind, entry } of changes) {
    if (entry === null || kind === 'removed' || kind === 'parcel') continue
    const sequence = kind === 'entry' ? entry.sequence : nextSequence()
    events.push({ sequence, kind, parcelId, entry: entry.sequence, payloadRef: null })
  }
  if (events.length > 0 || changes.length === 0) return events.sort((a, b) => a.sequence - b.sequence)
  const sequence = nextSequence()
  return [{ sequence, kind: 'update', parcelId, entry: sequence, payloadRef: null }]
}

interface MatchedSightings {
  /**
   * Stored sightings that were found in the bytes. `after` has the content as it is read now, and keeps the sequence, the audience and the
   * time of learning of `before`.
   */
  readonly matched: readonly { readonly before: KeptSighting; readonly after: KeptSighting }[]
  /** Stored sightings that are not in the bytes. */
  readonly unproven: readonly KeptSighting[]
  /** Sightings in the bytes that are not stored. */
  readonly missing: readonly ShownSighting[]
}

/**
 * Pairs each stored sighting of a parcel with one that this version of the relay reads from the stored bytes of pushes and answers.
 *
 * A newer version may parse the bytes differently, and so find another sighting in place of a stored one. Nothing says which sighting replaces
 * which. So this pairs the most similar sightings of the same source.
 */
function matchSightings(stored: readonly KeptSighting[], shown: ReadonlyMap<string, ShownSighting>): MatchedSightings {
  const matched: { before: KeptSighting; after: KeptSighting }[] = []
  const found = new Set<string>()
  let unproven: KeptSighting[] = []
  for (const before of stored) {
    const id = sightingId(before)
    const now = found.has(id) ? undefined : shown.get(id)
    if (now === undefined) unproven.push(before)
    else {
      found.add(id)
      matched.push({ before, after: isSame(before, now) ? before : succeed(before, now) })
    }
  }
  if (found.size === shown.size) return { matched, unproven, missing: [] }
  let missing = [...shown].filter(([id]) => !found.has(id)).map(([, now]) => now)
  for (const similar of SIMILAR) {
    const candidates = Map.groupBy(missing.toSorted(compareShown), similar)
    const taken = new Set<ShownSighting>()
    const left: KeptSighting[] = []
    for (const before of unproven.toSorted((a, b) => a.sequence - b.sequence)) {
      const now = candidates.get(similar(before))?.shift()
      if (now === undefined) left.push(before)
      else {
        taken.add(now)
        matched.push({ before, after: succeed(before, now) })
      }
    }
    unproven = left
    missing = missing.filter((now) => !taken.has(now))
  }
  return { matched, unproven, missing }
}

function isSame(before: KeptSighting, now: ShownSighting): boolean {
  return before.askedAtMs === now.askedAtMs && JSON.stringify(before.sighting.extra) === JSON.stringify(now.sighting.extra)
}

function succeed({ sequence, learntAtMs, audience }: KeptSighting, now: ShownSighting): KeptSighting {
  return { ...now, sequence, learntAtMs, audience }
}

type Comparable = Pick<KeptSighting, 'sighting' | 'askedAtMs' | 'ordinal'>

/** Criteria of similarity, the strictest first. Two sightings are similar if the criterion gives the same text for both. */
const SIMILAR: readonly ((one: Comparable) => string)[] = [
  ({ sighting, askedAtMs, ordinal }) =>
    JSON.stringify([...statusOf(sighting), sighting.instant.text, sighting.location, askedAtMs, ordinal]),
  ({ sighting, askedAtMs }) => JSON.stringify([...statusOf(sighting), Math.floor(sighting.instant.atMs / 1000), askedAtMs]),
  ({ sighting, askedAtMs }) => JSON.stringify([sighting.source, Math.floor(sighting.instant.atMs / 1000), askedAtMs]),
  ({ sighting, askedAtMs }) => JSON.stringify([...statusOf(sighting), askedAtMs]),
]

function statusOf({ source, status, detailedStatus }: Comparable['sighting']): readonly string[] {
  return [source, status, detailedStatus]
}

/** Compares in a fixed order, so that equal stores give equal results. */
function compareShown(a: ShownSighting, b: ShownSighting): number {
  return a.sighting.instant.atMs - b.sighting.instant.atMs || compareBytes(sightingId(a), sightingId(b))
}
