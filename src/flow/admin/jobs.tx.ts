import { type ReplayJobTask, type ReprocessJobTask, UNENDED_MAX, type UnendedJob } from '../../domain/admin/job.ts'
import type { ReplayedBatch, ReplayRequest } from '../../domain/delivery/delivery-list.ts'
import { type AuditTx, audit } from '../audit.tx.ts'
import type { WriteSide } from '../write-side.ts'
import type { Transactions, WriteTx } from '../write-store.ts'
import type { ReprocessBatches, ReprocessBatchTx, ReprocessedHeld, ReprocessIn } from './reprocess.tx.ts'

export type Jobs = Pick<WriteSide, 'replayDeliveries' | 'cancelRemoved' | 'startJob' | 'workOnJobs' | 'noteProgress' | 'cancelJob'>

type ReplayTx = Pick<WriteTx, 'listEndpoints' | 'replayDeliveries'>
type JobsTx = AuditTx &
  ReplayTx &
  ReprocessBatchTx &
  Pick<WriteTx, 'cancelJob' | 'cancelRemoved' | 'insertJob' | 'listUnendedJobs' | 'saveJob'>

/**
 * Creates the verbs of long work, which is done a batch at a time so that pushes need not wait for it. Each batch saves the job's progress
 * in its transaction, so a restart continues exactly there. Only the oldest job runs.
 */
export function createJobs(store: Transactions<JobsTx>, batches: ReprocessBatches): Jobs {
  return {
    replayDeliveries: ({ action, ...request }) =>
      store.transaction(
        async (tx) => {
          const batch = await replayBatch(tx, request)
          if (action !== undefined && batch !== null && batch.count > 0) audit(tx, { action })
          return batch
        },
        { announced: true },
      ),
    cancelRemoved: ({ limit }) => store.transaction((tx) => tx.cancelRemoved(limit), { ofRole: 'janitor' }),
    startJob: ({ task, by, nowMs, ...order }) =>
      store.transaction(
        async (tx) => {
          if ((await tx.listUnendedJobs(UNENDED_MAX)).length === UNENDED_MAX) return null
          const job = await tx.insertJob(task, by, nowMs)
          audit(tx, order, { job: String(job.jobId) })
          return job
        },
        { announced: true },
      ),
    async workOnJobs({ limit, nowMs }) {
      const { done, report, ...worked } = await batches.run((reprocess) =>
        store.transaction(
          async (tx) => {
            // Moves and backups are run elsewhere.
            const [job, ...others] = (await tx.listUnendedJobs(4)).filter(isInBatches)
            if (job === undefined) return { hasWorked: false, isDone: true, done: null }
            const { after, done } = isReplay(job)
              ? { after: await workOn(tx, job, limit, nowMs), done: null }
              : await reprocessFor(job, nowMs, (batch) => reprocess(tx, { ...batch, limit, nowMs }))
            await tx.saveJob(after, nowMs)
            return { hasWorked: true, isDone: after.endedAtMs !== null && others.length === 0, done }
          },
          { ofRole: 'janitor', announced: ({ hasWorked }) => hasWorked },
        ),
      )
      return { ...worked, report: done === null ? null : report }
    },
    noteProgress: ({ jobId, done, nowMs }) =>
      store.transaction(async (tx) => {
        const job = (await tx.listUnendedJobs(UNENDED_MAX)).find((one) => one.jobId === jobId)
        if (job !== undefined) await tx.saveJob({ ...job, state: 'running', done }, nowMs)
        return { isWanted: job !== undefined }
      }),
    cancelJob: ({ jobId, nowMs, ...order }) =>
      store.transaction(
        async (tx) => {
          const job = await tx.cancelJob(jobId, nowMs)
          // A job that had ended before is not cancelled.
          if (job?.state === 'cancelled' && job.endedAtMs === nowMs) audit(tx, order, { kind: job.task.kind })
          return job
        },
        { announced: true },
      ),
  }
}

type UnendedOf<Task> = UnendedJob & { readonly task: Task }

function isReplay(job: UnendedJob): job is UnendedOf<ReplayJobTask> {
  return job.task.kind === 'replay'
}

function isInBatches(job: UnendedJob): job is UnendedOf<ReplayJobTask> | UnendedOf<ReprocessJobTask> {
  return job.task.kind === 'replay' || job.task.kind === 'reprocess'
}

async function reprocessFor(
  job: UnendedOf<ReprocessJobTask>,
  nowMs: number,
  reprocess: (batch: Omit<Parameters<ReprocessIn>[1], 'limit' | 'nowMs'>) => Promise<ReprocessedHeld>,
): Promise<{ readonly after: UnendedJob; readonly done: ReprocessedHeld }> {
  const { selection, upTo } = job.task
  const after = job.cursor !== null && 'inboxId' in job.cursor ? job.cursor.inboxId : 0
  const done = await reprocess({ selection, after, upTo })
  const saved = { ...job, done: job.done + done.recorded.length }
  if (done.next === null) return { after: { ...saved, state: 'done', endedAtMs: nowMs }, done }
  return { after: { ...saved, state: 'running', cursor: { inboxId: done.next } }, done }
}

async function workOn(tx: ReplayTx, job: UnendedOf<ReplayJobTask>, limit: number, nowMs: number): Promise<UnendedJob> {
  const { selection, to, untilMs } = job.task
  const after = job.cursor !== null && 'inboxId' in job.cursor ? null : job.cursor
  const batch = await replayBatch(tx, { selection, to, untilMs, after, limit, nowMs })
  if (batch === null) return { ...job, state: 'failed', failure: 'The endpoint was removed.', endedAtMs: nowMs }
  const done = job.done + batch.count
  if (batch.next === null) return { ...job, state: 'done', done, endedAtMs: nowMs }
  return { ...job, state: 'running', done, cursor: batch.next }
}

async function replayBatch(tx: ReplayTx, request: ReplayRequest): Promise<ReplayedBatch | null> {
  const to = (await tx.listEndpoints()).find(({ endpoint }) => endpoint.id === request.to)
  // The endpoint was removed meanwhile, or catches up and gets the same events from the feed.
  return to === undefined || to.queuedTo !== null ? null : await tx.replayDeliveries(request)
}
