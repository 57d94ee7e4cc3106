import { isUnderstood } from '../../domain/history/observation.ts'
import type { BatchReport, Incoming, RecordRules } from '../../domain/history/recording.ts'
import { type CadenceModel, nextPoll } from '../../domain/polling/cadence.ts'
import type { Clock } from '../ports.ts'
import type { WriteSide } from '../write-side.ts'
import type { CarrierModelKeeper } from './carrier-model.ts'
import type { ModelCheckpoint } from './model-checkpoint.ts'

interface ModelVerbsPorts {
  readonly model: CarrierModelKeeper
  readonly currentModel: () => CadenceModel
  readonly checkpoint: ModelCheckpoint
  readonly clock: Pick<Clock, 'now'>
  /** Moves polls that come too late for what is now known of pushes. */
  readonly reschedulePolls: (nowMs: number) => Promise<void>
}

type Teaching = Pick<WriteSide, 'record' | 'notePollFailure' | 'settleMissedPushes'>

/** Makes the verbs that ask the model of the carrier, and lets it learn from `verbs`. */
export function createModelVerbs(
  { model, currentModel, checkpoint, clock, reschedulePolls }: ModelVerbsPorts,
  verbs: Teaching,
  { cadence, missedPushGraceMs }: RecordRules,
): Teaching & Pick<WriteSide, 'planPoll' | 'pushChannel' | 'checkpointModel'> {
  return {
    async record(batch) {
      // Any answer shows that the carrier is no longer silent. The model must know this before `record` schedules the next polls.
      if (batch.some(({ kind }) => kind === 'poll')) model.answered(clock.now())
      const report = await verbs.record(batch)
      noteArrivals(model, batch, report)
      return report
    },
    async notePollFailure(failure) {
      if (failure.kind === 'unavailable') model.unanswered(failure.atMs)
      if (failure.failsSinceMs !== undefined) model.unanswered(failure.failsSinceMs)
      if (failure.kind === 'unknown') model.answered(failure.atMs)
      await verbs.notePollFailure(failure)
    },
    async settleMissedPushes(nowMs) {
      const missed = await verbs.settleMissedPushes(nowMs)
      for (const { eventAtMs } of missed) model.missed({ eventAtMs, nowMs })
      checkpoint.countMissed(missed.length)
      model.review(missedPushGraceMs)
      await reschedulePolls(nowMs)
      return missed
    },
    planPoll: async (facts) => nextPoll(facts, currentModel(), cadence),
    pushChannel: async () => checkpoint.view(model.learnt(), missedPushGraceMs),
    checkpointModel: () => checkpoint.keep(model.learnt()),
  }
}

/**
 * Notes what the observations of a batch show about the push channel. A recorded push shows that the channel works, even if a poll found the
 * same entry earlier. A duplicate of a push does not show that.
 */
function noteArrivals(model: CarrierModelKeeper, batch: readonly Incoming[], { outcomes }: BatchReport): void {
  const [pushed, misread, polled]: [number[], number[], number[]] = [[], [], []]
  for (const [at, incoming] of batch.entries()) {
    const outcome = outcomes[at]
    if (incoming.kind === 'poll') polled.push(incoming.observation.askedAtMs)
    else if (outcome?.kind === 'recorded') pushed.push(incoming.receivedAtMs)
    else if (outcome?.kind === 'quarantined' && !isUnderstood(outcome.reason)) misread.push(incoming.receivedAtMs)
  }
  if (pushed.length > 0) model.pushed(Math.max(...pushed), pushed.length)
  if (misread.length > 0) model.misread(Math.max(...misread), misread.length)
  if (polled.length > 0) model.polled(Math.max(...polled))
}
