import type { ObservationSource } from '../delivery/plan-events.ts'
import type { IncomingPush } from '../ingest/inbox.ts'
import { reactivate } from '../polling/next-poll.ts'
import {
  type BatchState,
  currentWrites,
  draftOf,
  findIdentifier,
  needsOf,
  newDraft,
  type ParcelDraft,
  startBatch,
  survivorOf,
} from './batch-state.ts'
import type { ChangeSet, Recorded } from './change-set.ts'
import { commitJoin, commitMerge, duplicateOf, flagFull, keepUnrecorded, noteDuplicate } from './commit-observation.ts'
import { type DraftJoin, joinDrafts } from './join-drafts.ts'
import { mergeObservation } from './merge-observation.ts'
import { identifiersOf, type PollObservation, type PushObservation } from './observation.ts'
import type { IdentifierState } from './parcel-state.ts'
import type { RecordBatch } from './record-batch.ts'
import type { RecordRules } from './record-rules.ts'
import type { Incoming, IncomingPoll } from './recording.ts'
import type { Needs, Snapshot } from './snapshot.ts'

/**
 * Decides what a batch of observations changes, as data: pure and without a clock. Each observation sees what earlier ones created or
 * joined; histories, but not ids, are independent of the order within the batch. An observation that cannot be recorded is refused alone
 * and changes nothing else. `needs`: the snapshot lacks this; load it and decide the batch again.
 */
export function decide(snapshot: Snapshot, batch: RecordBatch, rules: RecordRules): ChangeSet | { readonly needs: Needs } {
  const state = startBatch(snapshot, batch)
  const recorded: Recorded[] = []
  const failures: unknown[] = []
  for (const [at, incoming] of batch.observations.entries()) {
    const { next } = state
    state.next = { ...next }
    try {
      recorded.push(decideOne(state, incoming, batch.digests[at] ?? '', rules))
    } catch (error) {
      state.next = next
      failures.push(error)
      recorded.push(refuse(state, incoming, batch.digests[at] ?? ''))
    }
  }
  const needs = needsOf(state)
  if (needs !== null) return { needs }
  const { writes, next, scanSamples, foundByPoll } = state
  return { writes, recorded, next, scanSamples, foundByPoll, failures }
}

function decideOne(state: BatchState, incoming: Incoming, digest: string, rules: RecordRules): Recorded {
  return incoming.kind === 'push' ? decidePush(state, incoming, digest, rules) : decidePoll(state, incoming, rules)
}

function refuse(state: BatchState, incoming: Incoming, digest: string): Recorded {
  if (incoming.kind === 'push') return keepUnrecorded(state, { push: incoming, digest, state: 'quarantined', reason: 'failed' })
  return { outcome: { kind: 'quarantined', reason: 'failed' }, touched: [] }
}

function decidePoll(state: BatchState, { observation, watch }: IncomingPoll, rules: RecordRules): Recorded {
  const { next } = state
  state.next = { ...next }
  const found = findSubject(state, observation, state.batch.nowMs)
  const { draft } = found
  if (draft !== null) {
    const now = watch ? { ...draft.state, ...reactivate(draft.state, observation.askedAtMs) } : draft.state
    const subject = {
      draft: { ...draft, state: now },
      plannedMs: null,
      isJoined: found.join !== null,
      newNames: found.newNames,
      body: null,
    }
    const source: ObservationSource = { kind: 'poll', observation }
    const merged = mergeObservation(state, subject, source, rules)
    if (merged !== null) {
      if (found.join !== null) commitJoin(state, found.join)
      return commitMerge(state, { subject, source, merged, touched: found.touched, isNew: found.isNew }, rules)
    }
  }
  state.next = next
  flagFull(state, found.known[0])
  return { outcome: { kind: 'quarantined', reason: 'parcel_full' }, touched: [] }
}

function decidePush(state: BatchState, push: IncomingPush, digest: string, rules: RecordRules): Recorded {
  const { reading } = push
  if (!reading.ok) return keepUnrecorded(state, { push, digest, state: 'quarantined', reason: reading.reason })
  const { observation } = reading
  const eventAtMs = observation.sighting.instant.atMs
  if (eventAtMs < push.receivedAtMs - rules.historyRetentionMs) {
    keepUnrecorded(state, { push, digest, state: 'expired', reason: null })
    return { outcome: { kind: 'expired' }, touched: [] }
  }

  const { next } = state
  state.next = { ...next }
  const found = findSubject(state, observation, push.receivedAtMs)
  const { draft } = found
  if (draft !== null) {
    const twin = duplicateOf(state, found.join === null ? draft : found.join.draft, digest)
    if (twin !== undefined && twin !== push.inboxId) {
      state.next = next
      return noteDuplicate(state, push, twin)
    }
    const inboxId = push.inboxId ?? state.next.inboxId++
    const now = afterPush(draft, push, eventAtMs)
    const subject = {
      draft: now,
      plannedMs: draft.state.nextPollAtMs,
      isJoined: found.join !== null,
      newNames: found.newNames,
      body: { inboxId, body: push.body },
    }
    const source: ObservationSource = { kind: 'push', observation, inboxId }
    const merged = mergeObservation(state, subject, source, rules)
    if (merged !== null) {
      if (found.join !== null) commitJoin(state, found.join)
      const { parcelId } = now.state
      currentWrites(state).inbox.push({ inboxId, push, digest, state: 'recorded', reason: null, parcelId })
      state.kept.set(digest, [...(state.kept.get(digest) ?? []), { inboxId, parcelId }])
      return commitMerge(state, { subject, source, merged, touched: found.touched, isNew: found.isNew }, rules)
    }
  }
  state.next = next
  const refused = keepUnrecorded(state, { push, digest, state: 'quarantined', reason: 'parcel_full' })
  if (refused.outcome.kind === 'quarantined') flagFull(state, found.known[0])
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
  /** Null: the parcels it names do not fit into one. */
  readonly draft: ParcelDraft | null
  readonly join: DraftJoin | null
  readonly isNew: boolean
  /** The ids of known parcels that it names, the oldest first. */
  readonly known: readonly number[]
  readonly touched: readonly number[]
  readonly newNames: readonly IdentifierState[]
}

/** Finds the parcel that an observation is about: a known one, a new one, or several that prove to be one (DOMAIN 1.3, 1.4). */
function findSubject(state: BatchState, observation: PushObservation | PollObservation, nowMs: number): Found {
  const values = identifiersOf(observation)
  const known = parcelsNamed(state, values)
  const [only] = known
  const isNew = only === undefined
  const join = known.length > 1 ? joinDrafts(state, known, observation, nowMs) : null
  if (known.length > 1 && join === null) return { draft: null, join, isNew, known, touched: known, newNames: [] }
  const draft = join?.draft ?? (only === undefined ? newDraft(state.next.parcelId++, nowMs) : draftOf(state, only))
  const { parcelId } = draft.state
  const newNames: IdentifierState[] = []
  let isNamedAnew = false
  for (const value of values) {
    const before = findIdentifier(state, value)
    const isTrackingId = before?.isTrackingId === true || observation.trackingIds.includes(value)
    if (before === undefined) isNamedAnew = true
    if (before?.isTrackingId !== isTrackingId) newNames.push({ value, parcelId, isTrackingId })
  }
  const named = isNamedAnew ? { ...draft, pollable: true } : draft
  return { draft: named, join, isNew, known, touched: isNew ? [parcelId] : known, newNames }
}

/** The ids of the parcels that have one of these identifiers, the oldest first. */
function parcelsNamed(state: BatchState, values: readonly string[]): readonly number[] {
  const found = new Set<number>()
  for (const value of values) {
    const identifier = findIdentifier(state, value)
    if (identifier !== undefined) found.add(survivorOf(state, identifier.parcelId))
  }
  return found.size < 2 ? [...found] : [...found].sort((a, b) => a - b)
}
