import { answersOf, type BatchState, orderOf, type ParcelDraft } from './batch-state.ts'
import type { AnswerWrite } from './change-set.ts'
import { type Entry, instantsTie, orderHistory } from './history.ts'
import type { PollObservation } from './observation.ts'
import { answerId, keepAnswers, keptAnswer, presentParcel } from './parcel-record.ts'

/** Keeps what a poll answered, as far as answers are kept; null: it is older than all that is kept. */
export function keepAnswer(
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
    write: { parcelId: draft.state.parcelId, answer, body: poll.body, decidesOrder, dropped },
  }
}

/** Entries newest first. */
export function orderEntries(batch: BatchState, draft: ParcelDraft, entries: readonly Entry[]): readonly Entry[] {
  return orderHistory(entries, instantsTie(entries) ? orderOf(batch, draft) : [])
}

/**
 * What an answer shows that is no single entry's: their order, and what is said of the parcel as a whole. Of some of its entries (those of
 * one second) it shows only a part, and still changes whenever the observation of that second changes the whole.
 */
export function envelopeOf(batch: BatchState, draft: ParcelDraft, entries: readonly Entry[]): string {
  const ordered = orderEntries(batch, draft, entries)
  const { trackingIds, distributionType, extra } = presentParcel(ordered, answersOf(batch, draft), [])
  return JSON.stringify([ordered.map((entry) => entry.sequence), trackingIds, distributionType, extra])
}
