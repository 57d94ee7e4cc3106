import type { IncomingPush } from '../ingest/inbox.ts'
import { type BatchState, currentWrites, type ParcelDraft, survivorOf } from './batch-state.ts'
import type { InboxWrite, Recorded } from './change-set.ts'
import { NO_PARCEL, pushKey } from './snapshot.ts'

/** The number that a push of equal bytes is kept under among those of a parcel. */
export function duplicateOf(state: BatchState, draft: ParcelDraft, digest: string): number | undefined {
  for (const origin of draft.origins) {
    const inboxId = state.snapshot.pushes.get(pushKey(origin, digest))
    if (inboxId !== undefined) return inboxId
  }
  return duplicateInBatch(state, draft.state.parcelId, digest)
}

function duplicateInBatch(state: BatchState, parcelId: number, digest: string): number | undefined {
  return state.kept.get(digest)?.find((one) => survivorOf(state, one.parcelId) === parcelId)?.inboxId
}

/** A push that came again is counted; one that was kept already gives way to the other. */
export function noteDuplicate(state: BatchState, { inboxId }: IncomingPush, twin: number): Recorded {
  const writes = currentWrites(state)
  writes.duplicates.push(twin)
  if (inboxId !== undefined) writes.dropped.push(inboxId)
  return { outcome: { kind: 'duplicate' }, touched: [] }
}

type Unrecorded = Omit<InboxWrite, 'inboxId' | 'parcelId'>

/** Keeps a push that is not recorded, unless the same was kept before. */
export function keepUnrecorded(state: BatchState, { push, digest, reason, ...unrecorded }: Unrecorded): Recorded {
  const { snapshot, missing, kept } = state
  if (!snapshot.unrecorded.has(digest)) missing.unrecorded.add(digest)
  const twin = snapshot.pushes.get(pushKey(NO_PARCEL, digest)) ?? duplicateInBatch(state, NO_PARCEL, digest)
  if (twin !== undefined && twin !== push.inboxId) return noteDuplicate(state, push, twin)
  const inboxId = push.inboxId ?? state.next.inboxId++
  currentWrites(state).inbox.push({ inboxId, push, digest, reason, ...unrecorded, parcelId: NO_PARCEL })
  kept.set(digest, [...(kept.get(digest) ?? []), { inboxId, parcelId: NO_PARCEL }])
  return { outcome: { kind: 'quarantined', reason: reason ?? 'failed' }, touched: [] }
}
