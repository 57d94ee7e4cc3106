import { eventValuesOf } from '../delivery/event-values.ts'
import { deliverableEventOf, planDeliveries } from '../delivery/plan-deliveries.ts'
import { anomaliesOf } from '../ingest/anomaly.ts'
import type { IncomingPush } from '../ingest/inbox.ts'
import { type BatchState, currentWrites, draftOf, type ParcelDraft, survivorOf } from './batch-state.ts'
import { emptyWriteSet, type InboxWrite, type Recorded, type WriteSet } from './change-set.ts'
import type { DraftJoin } from './join-drafts.ts'
import type { MergedObservation, Subject } from './merge-observation.ts'
import type { ObservationSource } from './observation.ts'
import type { ParcelState } from './parcel-state.ts'
import type { RecordRules } from './record-rules.ts'
import { NO_PARCEL, pushKey } from './snapshot.ts'

export interface Decided {
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
  const queued = writeEvents(batch, writes, merged)
  if (merged.updateSequence !== null) {
    writes.feed.push({ sequence: merged.updateSequence, kind: 'update', parcelId, entry: merged.updateSequence, payloadRef: null })
  }
  batch.scanSamples.push(...merged.scanSamples)
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
function writeEvents({ snapshot, nowMs }: BatchState, writes: WriteSet, { events }: MergedObservation): number {
  // An endpoint that is still catching up gets this event later, from the feed.
  const subscribers = snapshot.endpoints.filter(({ queuedTo }) => queuedTo === null)
  let queued = 0
  for (const planned of events) {
    writes.feed.push(planned.event)
    writes.eventValues.push(...eventValuesOf(planned))
    const event = subscribers.length === 0 ? null : deliverableEventOf(planned, nowMs)
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
  currentWrites(batch).inbox.push({ inboxId, push, digest, reason, ...unrecorded, parcelId: NO_PARCEL })
  kept.set(digest, [...(kept.get(digest) ?? []), { inboxId, parcelId: NO_PARCEL }])
  return { outcome: { kind: 'quarantined', reason: reason ?? 'failed' }, touched: [] }
}
