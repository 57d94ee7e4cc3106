import type { IncomingPush } from '../ingest/inbox.ts'
import { reactivate } from '../polling/poll.ts'
import {
  type BatchState,
  currentWrites,
  type DraftJoin,
  draftOf,
  findIdentifier,
  giveNumbersBack,
  joinDrafts,
  needsOf,
  newDraft,
  type ParcelDraft,
  startBatch,
  startObservation,
  survivorOf,
} from './batch-state.ts'
import type { ChangeSet, Recorded } from './change-set.ts'
import { type ErasedName, withoutErasedOfPoll, withoutErasedOfPush } from './erased.ts'
import { duplicateOf, flagFull, keepUnrecorded, mergeObservation, noteDuplicate, noteJoin, noteMerge } from './merge-observation.ts'
import { identifiersOf, type ObservationSource, type PollObservation, type PushObservation } from './observation.ts'
import type { IdentifierState } from './parcel-state.ts'
import type { Incoming, IncomingPoll, RecordBatch, RecordRules } from './recording.ts'
import type { BatchNeeds, Snapshot } from './snapshot.ts'

/**
 * Decides what a batch of observations changes, and returns the changes as data. This function is pure: it reads no store and no clock.
 *
 * Each observation sees the parcels that earlier observations of the batch have created or joined. The order within the batch influences
 * ids, but no history. An observation that cannot be recorded is refused; the other observations are recorded all the same.
 *
 * `needs`: data that the snapshot lacks. The caller loads it and decides the batch again.
 */
export function decide(
  snapshot: Snapshot,
  { observations, digests, nowMs }: RecordBatch,
  rules: RecordRules,
): ChangeSet | { readonly needs: BatchNeeds } {
  const batch = startBatch(snapshot, nowMs)
  const recorded: Recorded[] = []
  const failures: unknown[] = []
  for (const [at, incoming] of observations.entries()) {
    const digest = digests[at] ?? ''
    startObservation(batch)
    try {
      recorded.push(decideOne(batch, incoming, digest, rules))
    } catch (error) {
      giveNumbersBack(batch)
      failures.push(error)
      recorded.push(refuse(batch, incoming, digest))
    }
  }
  const needs = needsOf(batch)
  if (needs !== null) return { needs }
  const { writes, next, scanSamples, foundByPoll, noted, erased } = batch
  return { writes, recorded, next, scanSamples, foundByPoll, noted, erased, failures }
}

function decideOne(batch: BatchState, incoming: Incoming, digest: string, rules: RecordRules): Recorded {
  const living = batch.tombstones.size === 0 ? incoming : withoutErased(batch, incoming, rules)
  if (living === null) return ERASED
  return living.kind === 'push' ? decidePush(batch, living, digest, rules) : decidePoll(batch, living, rules)
}

const ERASED: Recorded = { outcome: { kind: 'erased' }, touched: [] }

/**
 * Removes erased identifiers from an observation. Null: the observation is about an erased parcel. Then the other identifiers in it are erased
 * too, and the push is deleted if the inbox already holds it.
 */
function withoutErased(batch: BatchState, incoming: Incoming, rules: RecordRules): Incoming | null {
  const nowMs = incoming.kind === 'push' ? incoming.receivedAtMs : batch.nowMs
  const look = { nowMs, tombstones: batch.tombstones, rules, isLiving: (value: string) => findIdentifier(batch, value) !== undefined }
  if (incoming.kind === 'poll') {
    const seen = withoutErasedOfPoll(incoming.observation, look)
    if (seen.kind === 'living') return { ...incoming, observation: seen.observation }
    return noteErased(batch, seen.names)
  }
  if (!incoming.reading.ok) return incoming
  const seen = withoutErasedOfPush(incoming.reading.observation, look)
  if (seen.kind === 'living') return { ...incoming, reading: { ok: true, observation: seen.observation } }
  if (incoming.inboxId !== undefined) currentWrites(batch).dropped.push(incoming.inboxId)
  return noteErased(batch, seen.names)
}

function noteErased(batch: BatchState, names: readonly ErasedName[]): null {
  for (const name of names) batch.tombstones.set(name.value, name)
  batch.erased.push(...names)
  return null
}

function refuse(batch: BatchState, incoming: Incoming, digest: string): Recorded {
  if (incoming.kind === 'push') return keepUnrecorded(batch, { push: incoming, digest, state: 'quarantined', reason: 'failed' })
  return { outcome: { kind: 'quarantined', reason: 'failed' }, touched: [] }
}

function decidePoll(batch: BatchState, { observation, watch }: IncomingPoll, rules: RecordRules): Recorded {
  const found = findSubject(batch, observation, batch.nowMs)
  const { draft } = found
  if (draft !== null) {
    const updatedState = watch ? { ...draft.state, ...reactivate(draft.state, observation.askedAtMs) } : draft.state
    const subject = {
      draft: { ...draft, state: updatedState },
      former: draft.state,
      plannedMs: null,
      isJoined: found.join !== null,
      newNames: found.newNames,
      body: null,
      learntAtMs: batch.nowMs,
    }
    const source: ObservationSource = { kind: 'poll', observation }
    const merged = mergeObservation(batch, subject, source, rules)
    if (merged !== 'parcel_full') {
      if (found.join !== null) noteJoin(batch, found.join)
      return noteMerge(batch, { subject, source, merged, touched: found.touched, isNew: found.isNew }, rules)
    }
  }
  giveNumbersBack(batch)
  flagFull(batch, found.known[0])
  return { outcome: { kind: 'quarantined', reason: 'parcel_full' }, touched: [] }
}

function decidePush(batch: BatchState, push: IncomingPush, digest: string, rules: RecordRules): Recorded {
  const { reading } = push
  if (!reading.ok) return keepUnrecorded(batch, { push, digest, state: 'quarantined', reason: reading.reason })
  const { observation } = reading
  const eventAtMs = observation.sighting.instant.atMs
  if (eventAtMs < push.receivedAtMs - rules.historyRetentionMs) {
    // The inbox stores the push once. If it comes again, it is `expired` again, not `duplicate`, because it was not recorded (DOMAIN 5.4).
    keepUnrecorded(batch, { push, digest, state: 'expired', reason: null })
    return { outcome: { kind: 'expired' }, touched: [] }
  }

  const found = findSubject(batch, observation, push.receivedAtMs)
  const { draft } = found
  if (draft !== null) {
    const twin = duplicateOf(batch, found.join === null ? draft : found.join.draft, digest)
    if (twin !== undefined && twin !== push.inboxId) {
      giveNumbersBack(batch)
      return noteDuplicate(batch, push, twin)
    }
    const inboxId = push.inboxId ?? batch.next.inboxId++
    const updatedDraft = afterPush(draft, push, eventAtMs)
    const subject = {
      draft: updatedDraft,
      former: draft.state,
      plannedMs: draft.state.nextPollAtMs,
      isJoined: found.join !== null,
      newNames: found.newNames,
      body: { inboxId, body: push.body },
      learntAtMs: push.receivedAtMs,
    }
    const source: ObservationSource = { kind: 'push', observation, inboxId }
    const merged = mergeObservation(batch, subject, source, rules)
    if (merged !== 'parcel_full') {
      if (found.join !== null) noteJoin(batch, found.join)
      const { parcelId } = updatedDraft.state
      currentWrites(batch).inbox.push({ inboxId, push, digest, state: 'recorded', reason: null, parcelId })
      batch.kept.set(digest, [...(batch.kept.get(digest) ?? []), { inboxId, parcelId }])
      return noteMerge(batch, { subject, source, merged, touched: found.touched, isNew: found.isNew }, rules)
    }
  }
  giveNumbersBack(batch)
  const refused = keepUnrecorded(batch, { push, digest, state: 'quarantined', reason: 'parcel_full' })
  if (refused.outcome.kind === 'quarantined') flagFull(batch, found.known[0])
  return refused
}

function afterPush(draft: ParcelDraft, { receivedAtMs }: IncomingPush, eventAtMs: number): ParcelDraft {
  const { state } = draft
  return {
    ...draft,
    state: {
      ...state,
      ...reactivate(state, receivedAtMs),
      firstPushedAtMs: state.firstPushedAtMs === null ? eventAtMs : Math.min(state.firstPushedAtMs, eventAtMs),
      lastSeenAtMs: Math.max(state.lastSeenAtMs ?? 0, receivedAtMs),
    },
  }
}

interface Found {
  /** Null: the named parcels cannot be joined, because together they exceed the limits of one parcel, or because some are not loaded yet. */
  readonly draft: ParcelDraft | null
  readonly join: DraftJoin | null
  readonly isNew: boolean
  /** The ids of the known parcels that the observation names, the oldest first. */
  readonly known: readonly number[]
  readonly touched: readonly number[]
  readonly newNames: readonly IdentifierState[]
}

/**
 * Finds the parcel that an observation is about: a known parcel, a new one, or several parcels that must be joined (DOMAIN 1.3, 1.4).
 *
 * @param atMs When the push was received, or for a poll the present time, epoch milliseconds.
 */
function findSubject(batch: BatchState, observation: PushObservation | PollObservation, atMs: number): Found {
  const values = identifiersOf(observation)
  const known = parcelsNamed(batch, values)
  const [only] = known
  const isNew = only === undefined
  const join = known.length > 1 ? joinDrafts(batch, known, observation, atMs) : null
  if (known.length > 1 && join === null) return { draft: null, join, isNew, known, touched: known, newNames: [] }
  const draft = join?.draft ?? (only === undefined ? newDraft(batch.next.parcelId++, atMs) : draftOf(batch, only))
  const { parcelId } = draft.state
  const newNames: IdentifierState[] = []
  for (const value of values) {
    const before = findIdentifier(batch, value)
    const isTrackingId = before?.isTrackingId === true || observation.trackingIds.includes(value)
    if (before?.isTrackingId !== isTrackingId) newNames.push({ value, parcelId, isTrackingId })
  }
  return { draft, join, isNew, known, touched: isNew ? [parcelId] : known, newNames }
}

/** Returns the ids of the parcels that have at least one of these identifiers, the oldest first. */
function parcelsNamed(batch: BatchState, values: readonly string[]): readonly number[] {
  const found = new Set<number>()
  for (const value of values) {
    const identifier = findIdentifier(batch, value)
    if (identifier !== undefined) found.add(survivorOf(batch, identifier.parcelId))
  }
  return found.size < 2 ? [...found] : [...found].sort((a, b) => a - b)
}
