import type { PollObservation } from '../../domain/history/observation.ts'
import { answerId, keepAnswers, keptAnswer } from '../../domain/history/parcel-record.ts'
import type { WriteTx } from '../write-store.ts'

/** Keeps what a poll answered, as far as answers are kept, and drops what is not kept any more. */
export async function keepAnswer(tx: WriteTx, parcelId: number, poll: PollObservation): Promise<void> {
  const answer = keptAnswer(poll)
  const known = await tx.loadAnswers(parcelId)
  const { kept, order } = keepAnswers([...known, answer])
  const ids = new Set(kept.map(answerId))
  // Older than all that is kept: somebody was long in telling it.
  if (!ids.has(answerId(answer))) return
  const decidesOrder = order !== null && answerId(order) === answerId(answer)
  await tx.saveAnswer({ parcelId, answer, body: poll.body, decidesOrder })
  await tx.dropAnswers(
    parcelId,
    known.filter((one) => !ids.has(answerId(one))),
  )
}
