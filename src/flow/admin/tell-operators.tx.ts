import type { Job } from '../../domain/admin/job.ts'
import { QUARANTINE_SUBJECTS, tellQuarantined } from '../../domain/admin/trouble.ts'
import type { OperatorEvent } from '../../domain/delivery/operator-event.ts'
import { recordOperatorEvent } from '../operator-events.tx.ts'
import type { WriteSide } from '../write-side.ts'
import type { WriteStore, WriteTx } from '../write-store.ts'

export type TellOperators = Pick<
  WriteSide,
  | 'recordOperatorEvent'
  | 'beginTrouble'
  | 'endTrouble'
  | 'tellOperators'
  | 'recordAction'
  | 'addTallies'
  | 'pruneTallies'
  | 'pruneOperations'
>

/** How much of what has happened is told in one transaction. */
const TOLD_AT_ONCE = 500

/**
 * The verbs by which operators are told what happens, and by which it is kept what they order. Each change of state is told once: it is told in the transaction
 * that writes it down, or that finds it written down and not told.
 */
export function createTellOperators(store: WriteStore): TellOperators {
  return {
    recordOperatorEvent: (event, nowMs, action) =>
      store.transaction(async (tx) => {
        await recordOperatorEvent(tx, event, nowMs)
        if (action !== undefined) tx.addAction(action)
      }),

    beginTrouble: ({ subject, event, nowMs, ofRole }) =>
      store.transaction(
        async (tx) => {
          const hasBegun = await tx.beginTrouble(subject, nowMs)
          if (hasBegun) await recordOperatorEvent(tx, event, nowMs)
          return hasBegun
        },
        ofRole === undefined ? {} : { ofRole },
      ),

    endTrouble: ({ subject, event, nowMs, ofRole }) =>
      store.transaction(
        async (tx) => {
          const sinceMs = await tx.endTrouble(subject)
          if (sinceMs !== null) await recordOperatorEvent(tx, { ...event, since: new Date(sinceMs).toISOString() }, nowMs)
          return sinceMs !== null
        },
        ofRole === undefined ? {} : { ofRole },
      ),

    tellOperators: ({ nowMs }) =>
      store.transaction(
        async (tx) => {
          const ended = await tx.takeEndedJobs()
          for (const job of ended) await recordOperatorEvent(tx, endOf(job), job.endedAtMs ?? nowMs)
          return ended.length + (await tellOfQuarantine(tx, nowMs))
        },
        { ofRole: 'janitor' },
      ),

    recordAction: (action) => store.transaction(async (tx) => tx.addAction(action)),

    addTallies: (additions) => store.transaction(async (tx) => tx.addTallies(additions)),

    pruneTallies: ({ nowMs, limit }) =>
      store.transaction(async (tx) => ({ isDone: (await tx.pruneTallies(nowMs, limit)) < limit }), { ofRole: 'janitor' }),

    pruneOperations: ({ beforeMs, limit }) =>
      store.transaction(async (tx) => ({ isDone: (await tx.pruneOperations(beforeMs, limit)) < limit }), { ofRole: 'janitor' }),
  }
}

async function tellOfQuarantine(tx: WriteTx, nowMs: number): Promise<number> {
  const counts = await tx.takeQuarantineCounts(TOLD_AT_ONCE)
  const { events, kept, over } = tellQuarantined(await tx.listTroubles(QUARANTINE_SUBJECTS), counts, nowMs)
  for (const trouble of kept) await tx.saveTrouble(trouble)
  for (const subject of over) await tx.endTrouble(subject)
  for (const event of events) await recordOperatorEvent(tx, event, nowMs)
  return events.length
}

function endOf({ jobId, task, state, done, failure }: Job): OperatorEvent {
  return { event: 'job_ended', job: { id: String(jobId), kind: task.kind }, state, done, failure }
}
