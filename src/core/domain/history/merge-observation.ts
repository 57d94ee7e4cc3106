import { updateEvent } from '../delivery/feed-entry.ts'
import { deliverableEventOf, eventValuesOf, type FeedAddition, indexPushes, planDeliveries, planEvents } from '../delivery/plan-events.ts'
import type { IncomingPush } from '../ingest/inbox.ts'
import { notAhead } from '../instant.ts'
import { keepEarlierPoll, scheduleNextPoll } from '../polling/poll.ts'
import { type ScanSample, scanSamplesOf } from '../polling/scan-rate.ts'
import {
  allSightings,
  answersOf,
  type BatchState,
  bodiesOf,
  currentWrites,
  type DraftJoin,
  draftOf,
  nextSequence,
  orderOf,
  type ParcelDraft,
  sightingsInSecond,
  survivorOf,
} from './batch-state.ts'
import { type AnswerWrite, emptyWriteSet, type InboxWrite, type Recorded, type WriteSet } from './change-set.ts'
import { deriveEntries, diffEntries, type Entry, type EntryChange, instantsTie, orderHistory } from './history.ts'
import type { ObservationSource, PollObservation } from './observation.ts'
import { lastContext, NO_CONTEXT } from './order-context.ts'
import { encodeOverwritten, overwrittenBy } from './overwritten.ts'
import { type IdentifierState, type ParcelState, repeatedOf } from './parcel-state.ts'
import { answerId, ENTRIES_MAX, keepAnswers, keptAnswer, presentParcel } from './pull-response.ts'
import { anomaliesOf, type RecordRules } from './recording.ts'
import { type Noted, notedOfMerge } from './report-notes.ts'
import { type KeptSighting, type ListedSighting, mergeSightings, sightingsOf } from './sightings.ts'
import { type KeptBody, NO_PARCEL, pushKey, secondOf } from './snapshot.ts'

/** The parcel that an observation is about. What the observation changes outside the history is already changed in `draft`. */
export interface Subject {
  readonly draft: ParcelDraft
  /** The state before the observation. */
  readonly former: ParcelState
  /** When the parcel's next poll was due before the observation, epoch milliseconds; null: no poll was planned. */
  readonly plannedMs: number | null
  /** Whether this observation joined several parcels into this one. Then the join has already checked the maximum number of entries. */
  readonly isJoined: boolean
  /** Identifiers that are new to the parcel, or that have just become known to be tracking ids. */
  readonly newNames: readonly IdentifierState[]
  /** The push to record; null: the observation is a poll. */
  readonly body: KeptBody | null
  /** When the push came; for a poll, now. */
  readonly learntAtMs: number
}

export interface MergedObservation {
  readonly draft: ParcelDraft
  readonly sightings: readonly KeptSighting[]
  readonly answer: AnswerWrite | null
  readonly changes: readonly EntryChange[]
  readonly events: readonly FeedAddition[]
  /** The sequence of a feed event that reports an update of the whole parcel; null: no such event is needed. */
  readonly updateSequence: number | null
  /** What the observation overwrites (`encodeOverwritten`); null: nothing. */
  readonly overwritten: string | null
  readonly scanSamples: readonly ScanSample[]
  readonly noted: readonly Noted[]
}

/** Merges an observation into a parcel. Returns `parcel_full` if the parcel would have too many entries (DOMAIN 1.6). */
export function mergeObservation(
  batch: BatchState,
  subject: Subject,
  source: ObservationSource,
  rules: RecordRules,
): MergedObservation | 'parcel_full' {
  const { draft, isJoined } = subject
  const { state } = draft
  const { observation } = source
  // A push changes only its own second of the history, unless it joins parcels.
  const second = observation.kind === 'push' && !isJoined ? secondOf(observation.sighting.instant.atMs) : null
  const before = second === null ? allSightings(batch, draft) : sightingsInSecond(batch, draft, second)
  const { kept, changed } = mergeSightings(before, oldestFirst(sightingsOf(observation)), () => nextSequence(batch), batch.nowMs)
  const entriesBefore = deriveEntries(before)
  const entries = changed.length === 0 ? entriesBefore : deriveEntries(kept)
  const others = second === null ? 0 : state.entryCount - entriesBefore.length
  const isTooLarge = !isJoined && entries.length + others > ENTRIES_MAX && entries.length > entriesBefore.length
  if (isTooLarge) return 'parcel_full'

  const changes = diffEntries(entriesBefore, entries)
  const events = planEvents({
    changes,
    entries,
    parcel: state,
    source,
    findPushes: memoized(() => indexPushes([...bodiesOf(batch, draft), ...(subject.body === null ? [] : [subject.body])])),
    nextSequence: () => nextSequence(batch),
    learntAtMs: batch.nowMs,
    recentMs: Math.min(rules.cadence.staleAfterMs, rules.historyRetentionMs),
  })
  const sightings = withReported(changed, events)
  const answered = observation.kind === 'poll' ? keepAnswer(batch, draft, observation) : null
  const after = { ...(answered?.draft ?? draft), seconds: secondsAfter(draft, second, kept, sightings) }
  // The events of changed entries and of joins contain the whole parcel. Without such an event, a change of the parcel needs its own event.
  const isUnreported = changes.length === 0 && !isJoined
  const mayDiffer = observation.kind === 'poll' || changed.length > 0
  const isUpdated = isUnreported && isParcelChanged(batch, subject, { mayDiffer, entriesBefore, after, entries })
  const updateSequence = isUpdated ? nextSequence(batch) : null
  const { former, newNames } = subject
  const overwriting = { observation, former, before: draft, after, known: before, changed, newNames, isJoined }
  const overwritten = encodeOverwritten(overwrittenBy(batch, overwriting))
  // What is overwritten held before a sequence, so the change must have one.
  if (overwritten !== null && batch.next.sequence === batch.nextBefore.sequence) nextSequence(batch)
  // Below the newest second the order of entries does not matter, so nothing is loaded for it.
  const isBehind = second !== null && state.latest !== null && second < secondOf(state.latest.atMs)
  const repeated = repeatedOf(state, isBehind ? entries : orderEntries(batch, after, entries), others, batch.nowMs)
  const merged: ParcelState = { ...state, ...repeated, ...afterPoll(batch, state, source) }
  // The carrier has just reported on the parcel. So the schedule must treat the parcel as known to the carrier.
  const scheduled = scheduleNextPoll(merged, batch.nowMs, batch.snapshot.model, rules.cadence, batch.nowMs)
  return {
    draft: { ...after, state: observation.kind === 'push' ? keepEarlierPoll(scheduled, subject.plannedMs) : scheduled },
    sightings,
    answer: answered?.write ?? null,
    changes,
    events,
    updateSequence,
    overwritten,
    scanSamples: scanSamplesOf(state, observation, entries, { nowMs: batch.nowMs, knownTo: batch.nextBefore.sequence - 1 }),
    noted: notedOfMerge({ source, parcel: state, entries, changed, learntAtMs: subject.learntAtMs, graceMs: rules.missedPushGraceMs }),
  }
}

/** Older entries get lower sequences, so they are relayed first. A carrier lists the newest first, but not every answer is in order. */
function oldestFirst(listed: readonly ListedSighting[]): readonly ListedSighting[] {
  return listed.toReversed().sort((a, b) => a.sighting.instant.atMs - b.sighting.instant.atMs)
}

interface Comparison {
  /** False: no comparison is needed, because the observation changed no sighting and no answer. */
  readonly mayDiffer: boolean
  readonly entriesBefore: readonly Entry[]
  readonly after: ParcelDraft
  readonly entries: readonly Entry[]
}

function isParcelChanged(
  batch: BatchState,
  { draft, newNames }: Subject,
  { mayDiffer, entriesBefore, after, entries }: Comparison,
): boolean {
  const isEnvelopeChanged = mayDiffer && envelopeOf(batch, draft, entriesBefore) !== envelopeOf(batch, after, entries)
  return newNames.length > 0 || isEnvelopeChanged
}

/** Returns the sightings to save, each once: those that have changed, and those whose audience an event changes. */
function withReported(changed: readonly KeptSighting[], events: readonly FeedAddition[]): readonly KeptSighting[] {
  const [only] = changed
  const [event] = events
  if (only !== undefined && changed.length === 1 && events.length === 1 && event?.reported?.sequence === only.sequence)
    return [event.reported]
  const bySequence = new Map(changed.map((kept) => [kept.sequence, kept]))
  for (const { reported } of events) if (reported !== null) bySequence.set(reported.sequence, reported)
  return [...bySequence.values()]
}

function secondsAfter(
  { seconds }: ParcelDraft,
  second: number | null,
  kept: readonly KeptSighting[],
  saved: readonly KeptSighting[],
): ParcelDraft['seconds'] {
  const bySequence = new Map(saved.map((one) => [one.sequence, one]))
  const now = kept.map((one) => bySequence.get(one.sequence) ?? one)
  if (second === null) return Map.groupBy(now, ({ sighting }) => secondOf(sighting.instant.atMs))
  return new Map(seconds).set(second, now)
}

/** Returns what a poll changes in the parcel's state. Times in the future count as now, because the clock may have been put back. */
function afterPoll({ nowMs }: BatchState, parcel: ParcelState, { observation }: ObservationSource): Partial<ParcelState> | null {
  if (observation.kind === 'push') return null
  const checkedAtMs = notAhead(observation.askedAtMs, nowMs)
  return {
    lastSeenAtMs: Math.max(notAhead(parcel.lastSeenAtMs, nowMs) ?? 0, checkedAtMs),
    checkedAtMs: Math.max(notAhead(parcel.checkedAtMs, nowMs) ?? 0, checkedAtMs),
    failures: 0,
  }
}

function memoized<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | null = null
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** Adds an answer to the kept answers. Returns null if the answer is too old to be kept. */
function keepAnswer(
  batch: BatchState,
  draft: ParcelDraft,
  poll: PollObservation,
): { readonly draft: ParcelDraft; readonly write: AnswerWrite } | null {
  const answer = keptAnswer(poll)
  const known = answersOf(batch, draft)
  const { kept, order } = keepAnswers([...known, answer])
  const ids = new Set(kept.map(answerId))
  if (!ids.has(answerId(answer))) return null
  const decidesOrder = order !== null && answerId(order) === answerId(answer)
  const dropped = known.filter((one) => !ids.has(answerId(one)))
  return {
    draft: { ...draft, answers: kept, orderFrom: decidesOrder ? poll : draft.orderFrom },
    write: { parcelId: draft.state.parcelId, answer, body: poll.isPartial === true ? null : poll.body, decidesOrder, dropped },
  }
}

function orderEntries(batch: BatchState, draft: ParcelDraft, entries: readonly Entry[]): readonly Entry[] {
  return orderHistory(entries, instantsTie(entries) ? orderOf(batch, draft) : [])
}

/**
 * Encodes what answers show about a parcel apart from the entries themselves: their order, and the values of the whole parcel. After a push,
 * `entries` need only be those of its second, because a push changes no others.
 */
function envelopeOf(batch: BatchState, draft: ParcelDraft, entries: readonly Entry[]): string {
  const ordered = orderEntries(batch, draft, entries)
  const { entries: _entries, ...parcel } = presentParcel(ordered, answersOf(batch, draft), [])
  return JSON.stringify([ordered.map((entry) => entry.sequence), parcel])
}

interface Decided {
  readonly subject: Subject
  readonly source: ObservationSource
  readonly merged: MergedObservation
  readonly touched: readonly number[]
  readonly isNew: boolean
}

/** Notes a join in the batch, so that later observations see a single parcel. */
export function noteJoin(batch: BatchState, { join, feed }: DraftJoin): void {
  const writes = emptyWriteSet(join)
  batch.writes.push(writes)
  writes.feed.push(...feed)
  writes.parcels.set(join.parcel.parcelId, join.parcel)
  for (const other of join.others) {
    batch.survivors.set(other.state.parcelId, join.parcel.parcelId)
    batch.drafts.delete(other.state.parcelId)
  }
}

/** Notes the changes of an observation, for the store and for later observations of the batch. */
export function noteMerge(batch: BatchState, decided: Decided, rules: RecordRules): Recorded {
  const { subject, source, merged, touched } = decided
  const { draft, changes, answer } = merged
  const { parcelId } = draft.state
  const { nowMs } = batch
  const writes = currentWrites(batch)
  for (const name of subject.newNames) {
    writes.identifiers.push(name)
    batch.identifiers.set(name.value, name)
  }
  for (const kept of merged.sightings) writes.sightings.push({ parcelId, kept })
  if (answer !== null) writes.answers.push(answer)
  if (merged.overwritten !== null)
    writes.overwritten.push({ parcelId, sequence: batch.nextBefore.sequence, learntAtMs: nowMs, value: merged.overwritten })
  const queued = writeEvents(batch, writes, merged, draft)
  if (merged.updateSequence !== null) {
    writes.feed.push(updateEvent(merged.updateSequence, parcelId))
  }
  batch.scanSamples.push(...merged.scanSamples)
  batch.noted.push(...merged.noted)
  if (source.kind === 'poll') {
    expectPushes(writes, merged, nowMs, rules)
    for (const { kind, entry } of changes) if (kind === 'entry') batch.foundByPoll.push(countsAtMs(entry, nowMs))
    writes.released.push(parcelId)
  }
  if (decided.isNew) writes.created.add(parcelId)
  saveDraft(batch, writes, subject.body === null ? draft : { ...draft, bodies: [...draft.bodies, subject.body] })
  const newEntries = changes.filter(({ kind }) => kind === 'entry').length
  const anomalies = anomaliesOf(source.observation, draft.state.entryCount, nowMs)
  const recorded = { kind: 'recorded', parcelId, changed: changes.length > 0, newEntries, queued } as const
  return { outcome: anomalies.length === 0 ? recorded : { ...recorded, anomalies }, touched }
}

/** Returns how many deliveries were queued. */
function writeEvents({ snapshot, nowMs }: BatchState, writes: WriteSet, { events }: MergedObservation, draft: ParcelDraft): number {
  // An endpoint that is still catching up gets this event later, from the feed.
  const subscribers = snapshot.endpoints.filter(({ queuedTo }) => queuedTo === null)
  const order = lastContext(draft.origins.flatMap((parcelId) => snapshot.parcels.get(parcelId)?.context ?? [])) ?? NO_CONTEXT
  let queued = 0
  for (const planned of events) {
    writes.feed.push(planned.event)
    writes.eventValues.push(...eventValuesOf(planned))
    const event = subscribers.length === 0 ? null : deliverableEventOf(planned, order, nowMs)
    if (event === null) continue
    const { composed, deliveries } = planDeliveries(subscribers, event)
    if (composed !== null) writes.composed.push({ sequence: event.sequence, body: composed })
    writes.deliveries.push(...deliveries)
    queued += deliveries.length
  }
  return queued
}

/** Returns the time of an entry; `nowMs` if the carrier's clock is ahead of ours and the entry is in the future (DOMAIN 6.1). */
function countsAtMs({ atMs }: { readonly atMs: number }, nowMs: number): number {
  return Math.min(atMs, nowMs)
}

/**
 * A poll has found entries before any push reported them. So their pushes are expected, and count as missed after the grace period. Pushes of
 * backfill are not expected (DOMAIN 6.6).
 */
function expectPushes(
  writes: WriteSet,
  { events }: MergedObservation,
  nowMs: number,
  { missedPushGraceMs, restoredAtMs }: RecordRules,
): void {
  for (const { event, entry, reported } of events) {
    if (event.kind !== 'entry' || reported?.audience.kind === 'backfill') continue
    // The pushes of entries from before a restore may have come already. The store that received them was replaced.
    if (restoredAtMs !== null && restoredAtMs !== undefined && entry.atMs < restoredAtMs) continue
    const found = { parcelId: event.parcelId, entry: entry.sequence, eventAtMs: countsAtMs(entry, nowMs), foundAtMs: nowMs }
    writes.expected.push({ ...found, dueAtMs: nowMs + missedPushGraceMs })
  }
}

/** Marks a parcel as full. `parcelId` undefined: the parcel is not stored, so nothing is marked. */
export function flagFull(batch: BatchState, parcelId: number | undefined): void {
  if (parcelId === undefined) return
  const draft = draftOf(batch, parcelId)
  if (!draft.state.full) saveDraft(batch, currentWrites(batch), { ...draft, state: { ...draft.state, full: true } })
}

function saveDraft({ drafts }: BatchState, writes: WriteSet, draft: ParcelDraft): void {
  const { state }: { readonly state: ParcelState } = draft
  drafts.set(state.parcelId, draft)
  writes.parcels.set(state.parcelId, state)
  if (state.latest !== null) writes.statuses.add(state.latest.status)
}

/** Returns the inbox id of a stored push with equal bytes about the same parcel; undefined: there is no such push. */
export function duplicateOf(batch: BatchState, draft: ParcelDraft, digest: string): number | undefined {
  for (const origin of draft.origins) {
    const inboxId = batch.snapshot.pushes.get(pushKey(origin, digest))
    if (inboxId !== undefined) return inboxId
  }
  return duplicateInBatch(batch, draft.state.parcelId, digest)
}

function duplicateInBatch(batch: BatchState, parcelId: number, digest: string): number | undefined {
  return batch.kept.get(digest)?.find((one) => survivorOf(batch, one.parcelId) === parcelId)?.inboxId
}

/** Counts a repeated push at the inbox row of the first one, `twin`. A push that is reprocessed has a row of its own, which is deleted. */
export function noteDuplicate(batch: BatchState, { inboxId }: IncomingPush, twin: number): Recorded {
  const writes = currentWrites(batch)
  if (inboxId === undefined) batch.noted.push({ kind: 'repeated', atMs: batch.nowMs, inboxId: twin })
  writes.duplicates.push(twin)
  if (inboxId !== undefined) writes.dropped.push(inboxId)
  return { outcome: { kind: 'duplicate' }, touched: [] }
}

type Unrecorded = Omit<InboxWrite, 'inboxId' | 'parcelId'>

/** Stores a push in the inbox without recording it. If the inbox has an equal push already, the new one is only counted. */
export function keepUnrecorded(batch: BatchState, { push, digest, reason, ...unrecorded }: Unrecorded): Recorded {
  const { snapshot, missing, kept } = batch
  if (!snapshot.unrecorded.has(digest)) missing.unrecorded.add(digest)
  const twin = snapshot.pushes.get(pushKey(NO_PARCEL, digest)) ?? duplicateInBatch(batch, NO_PARCEL, digest)
  if (twin !== undefined && twin !== push.inboxId) return noteDuplicate(batch, push, twin)
  const inboxId = push.inboxId ?? batch.next.inboxId++
  const isFirst = push.inboxId === undefined && unrecorded.state === 'quarantined'
  if (isFirst) batch.noted.push({ kind: 'quarantined', atMs: push.receivedAtMs, inboxId })
  currentWrites(batch).inbox.push({ inboxId, push, digest, reason, ...unrecorded, parcelId: NO_PARCEL })
  kept.set(digest, [...(kept.get(digest) ?? []), { inboxId, parcelId: NO_PARCEL }])
  return { outcome: { kind: 'quarantined', reason: reason ?? 'failed' }, touched: [] }
}
