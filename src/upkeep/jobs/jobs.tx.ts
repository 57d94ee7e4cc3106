import {
  type DismissJobTask,
  type Job,
  type JobTask,
  type ReplayJobTask,
  type ReprocessJobTask,
  UNENDED_MAX,
} from '../../core/domain/admin/job.ts'
import type { Audited } from '../../core/domain/admin/operator-action.ts'
import { audit } from '../../core/flow/audit.tx.ts'
import { replayBatch } from '../../core/flow/delivery/redeliver.tx.ts'
import { cancelJob, insertJob, saveJob } from '../../core/store/admin/jobs.ts'
import type { Session } from '../../core/store/engine.ts'
import { dismissHeld } from '../../core/store/ingest/held-pushes.ts'
import type { Transactions, WriteTx } from '../../core/store/write-store.ts'
import type { BackupJobTask } from '../backups/backup.rules.ts'
import type { ReprocessBatches, ReprocessedHeld, ReprocessIn } from '../inbox/reprocess.tx.ts'
import type { MoveJobTask } from '../moving/store-move.rules.ts'
import { type createRebuild, isRebuild } from '../rebuild/rebuild.tx.ts'
import type { RetentionJobTask } from '../retention/retention.rules.ts'
import { type PassBatch, type PrunePorts, pruneIn } from '../retention/retention.tx.ts'

/**
 * Only the oldest job runs. It is done in batches, so that pushes need not wait for it. Each batch and the job's progress are saved in one
 * transaction, so that after a restart the job continues exactly after the last batch.
 */
export function createJobs(
  store: Transactions,
  batches: ReprocessBatches,
  { retention, changed, clockWatch }: PrunePorts,
  rebuild: ReturnType<typeof createRebuild>,
) {
  return {
    /** Queues a job; null: too many jobs have not ended. */
    startJob: ({ task, by, nowMs, ...order }: Audited & { readonly task: JobTask; readonly by: string; readonly nowMs: number }) =>
      store.transaction(
        async (tx) => {
          if ((await tx.listUnendedJobs(UNENDED_MAX)).length === UNENDED_MAX) return null
          const job = await insertJob(tx, task, by, nowMs)
          audit(tx, order, { job: String(job.jobId) })
          return job
        },
        { announced: true },
      ),
    /**
     * Does a batch of the oldest unended job that is no move or backup. `hasWorked`: there was such a job. `isDone`: no such job is left. The store
     * keeps the progress, so the work continues after a restart. `hasRetired`: whether parcels were retired, which adds events to the feed. `report`:
     * the reprocessed pushes; null: the job was of another kind. `rebuilt` null: the job was no rebuild.
     */
    async workOnJobs({ limit, nowMs }: { readonly limit: number; readonly nowMs: number }) {
      const { done, retired, report, ...worked } = await batches.run((reprocess) =>
        store.transaction(
          async (tx) => {
            // `manage-moves` and `manage-backups` run moves and backups, which are not done in batches.
            const [job, ...others] = (await tx.listUnendedJobs(4)).filter(isInBatches)
            if (job === undefined || isRebuild(job)) return { hasWorked: false, isDone: job === undefined, done: null, retired: [] }
            const { after, done, retired } = await workOnOne(job)
            await saveJob(tx, after, nowMs)
            return { hasWorked: true, isDone: after.endedAtMs !== null && others.length === 0, done, retired }

            async function workOnOne(one: JobInBatches): Promise<Worked> {
              if (isReplay(one)) return { after: await workOn(tx, one, { limit, nowMs }), done: null, retired: [] }
              if (isRetention(one))
                return await pruneFor(one, nowMs, (ofPassMs) =>
                  pruneIn(tx, { retention: retention(), nowMs, isOrdered: true, clockWatch, ofPassMs }),
                )
              if (isReprocess(one)) return await reprocessFor(one, nowMs, (batch) => reprocess(tx, { ...batch, limit, nowMs }))
              if (isDismiss(one)) return await dismissFor(tx, one, limit, nowMs)
              throw new Error(`nobody works on a job of the kind ${one.task.kind} here`)
            }
          },
          { ofRole: 'janitor', announced: ({ hasWorked }) => hasWorked },
        ),
      )
      if (retired.length > 0) changed(retired)
      if (!worked.hasWorked && !worked.isDone) {
        // The oldest job is a rebuild, which runs in a transaction of its own.
        const { news, isDone } = await rebuild({ limit, nowMs })
        return { hasWorked: news !== null, isDone, hasRetired: false, report: null, rebuilt: news }
      }
      return { ...worked, hasRetired: retired.length > 0, report: done === null ? null : report, rebuilt: null }
    },
    /** Saves the progress of a move or a backup. `isWanted`: the job was not cancelled. */
    noteProgress: ({ jobId, done, nowMs }: { readonly jobId: number; readonly done: number; readonly nowMs: number }) =>
      store.transaction(async (tx) => {
        const job = (await tx.listUnendedJobs(UNENDED_MAX)).find((one) => one.jobId === jobId)
        if (job !== undefined) await saveJob(tx, { ...job, state: 'running', done }, nowMs)
        return { isWanted: job !== undefined }
      }),
    /** Cancels a job. What it has done stays done. A job that has ended does not change. Null: there is no such job. */
    cancelJob: ({ jobId, nowMs, ...order }: Audited & { readonly jobId: number; readonly nowMs: number }) =>
      store.transaction(
        async (tx) => {
          const job = await cancelJob(tx, jobId, nowMs)
          // A job that had ended before was not cancelled now, so there is nothing to record.
          if (job?.state === 'cancelled' && job.endedAtMs === nowMs) audit(tx, order, { kind: job.task.kind })
          return job
        },
        { announced: true },
      ),
  }
}

type UnendedOf<Task> = Job & { readonly task: Task }

type JobInBatches = UnendedOf<Exclude<JobTask, MoveJobTask | BackupJobTask>>

interface Worked {
  readonly after: Job
  readonly done: ReprocessedHeld | null
  /** The ids of parcels that retention has deleted. */
  readonly retired: readonly number[]
}

function isReplay(job: Job): job is UnendedOf<ReplayJobTask> {
  return job.task.kind === 'replay'
}

function isReprocess(job: Job): job is UnendedOf<ReprocessJobTask> {
  return job.task.kind === 'reprocess'
}

function isDismiss(job: Job): job is UnendedOf<DismissJobTask> {
  return job.task.kind === 'dismiss'
}

function isRetention(job: Job): job is UnendedOf<RetentionJobTask> {
  return job.task.kind === 'retention'
}

function isInBatches(job: Job): job is JobInBatches {
  return job.task.kind !== 'move' && job.task.kind !== 'backup'
}

/** Continues the job's retention pass, or begins one. The job ends with its pass. */
async function pruneFor(job: Job, nowMs: number, prune: (ofPassMs: number | null) => Promise<PassBatch>): Promise<Worked> {
  const ofPassMs = job.cursor !== null && 'passStartedAtMs' in job.cursor ? job.cursor.passStartedAtMs : null
  const { removedByPass, retired, pass, isClockDoubted } = await prune(ofPassMs)
  const saved = { ...job, done: Math.max(job.done, removedByPass) }
  if (isClockDoubted) {
    const failure = "Nothing is removed while the relay's clock and another clock contradict each other. Set the clocks right."
    return { after: { ...saved, state: 'failed', failure, endedAtMs: nowMs }, done: null, retired }
  }
  if (pass === null) return { after: { ...saved, state: 'done', endedAtMs: nowMs }, done: null, retired }
  return { after: { ...saved, state: 'running', cursor: { passStartedAtMs: pass.startedAtMs } }, done: null, retired }
}

async function reprocessFor(
  job: UnendedOf<ReprocessJobTask>,
  nowMs: number,
  reprocess: (batch: Omit<Parameters<ReprocessIn>[1], 'limit' | 'nowMs'>) => Promise<ReprocessedHeld>,
): Promise<Worked> {
  const { selection, upTo } = job.task
  const after = job.cursor !== null && 'inboxId' in job.cursor ? job.cursor.inboxId : 0
  const done = await reprocess({ selection, after, upTo })
  const saved = { ...job, done: job.done + done.recorded.length }
  if (done.next === null) return { after: { ...saved, state: 'done', endedAtMs: nowMs }, done, retired: [] }
  return { after: { ...saved, state: 'running', cursor: { inboxId: done.next } }, done, retired: [] }
}

async function dismissFor(tx: Session, job: UnendedOf<DismissJobTask>, limit: number, nowMs: number): Promise<Worked> {
  const { selection, upTo } = job.task
  const after = job.cursor !== null && 'inboxId' in job.cursor ? job.cursor.inboxId : 0
  const { count, next } = await dismissHeld(tx, { reason: selection.reason, after, upTo, limit })
  const saved = { ...job, done: job.done + count }
  if (next === null) return { after: { ...saved, state: 'done', endedAtMs: nowMs }, done: null, retired: [] }
  return { after: { ...saved, state: 'running', cursor: { inboxId: next } }, done: null, retired: [] }
}

async function workOn(
  tx: WriteTx,
  job: UnendedOf<ReplayJobTask>,
  { limit, nowMs }: { readonly limit: number; readonly nowMs: number },
): Promise<Job> {
  const after = job.cursor !== null && 'at' in job.cursor ? job.cursor : null
  const batch = await replayBatch(tx, { ...job.task, after, limit, nowMs })
  if (batch === null)
    return {
      ...job,
      state: 'failed',
      failure: 'The endpoint was removed, or it is catching up and gets these events from the feed.',
      endedAtMs: nowMs,
    }
  const done = job.done + batch.count
  if (batch.next === null) return { ...job, state: 'done', done, endedAtMs: nowMs }
  return { ...job, state: 'running', done, cursor: batch.next }
}
