import type { ReplayJobTask, UnendedJob } from '../../domain/admin/job.ts'
import type { ReplayedBatch, ReplayRequest } from '../../domain/delivery/delivery-list.ts'
import { audit } from '../audit.tx.ts'
import type { WriteSide } from '../write-side.ts'
import type { WriteStore, WriteTx } from '../write-store.ts'

export type Jobs = Pick<WriteSide, 'replayDeliveries' | 'cancelRemoved' | 'startJob' | 'workOnJobs' | 'noteMove' | 'cancelJob'>

/** The maximum of jobs that have not ended. */
const UNENDED_MAX = 100

/**
 * Long work, done a batch at a time so that pushes need not wait for it. A job is saved with its progress in the transaction of each batch,
 * so a restart continues exactly there. One job runs at a time, the oldest.
 */
export function createJobs(store: WriteStore): Jobs {
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
    workOnJobs: ({ limit, nowMs }) =>
      store.transaction(
        async (tx) => {
          // One of them may be a move, which runs by itself.
          const [job, ...others] = (await tx.listUnendedJobs(3)).filter(isReplay)
          if (job === undefined) return { hasWorked: false, isDone: true }
          const after = await workOn(tx, job, limit, nowMs)
          await tx.saveJob(after, nowMs)
          return { hasWorked: true, isDone: after.endedAtMs !== null && others.length === 0 }
        },
        { ofRole: 'janitor', announced: ({ hasWorked }) => hasWorked },
      ),
    noteMove: ({ jobId, done, nowMs }) =>
      store.transaction(async (tx) => {
        const job = (await tx.listUnendedJobs(UNENDED_MAX)).find((one) => one.jobId === jobId)
        if (job !== undefined) await tx.saveJob({ ...job, state: 'running', done }, nowMs)
        return { isWanted: job !== undefined }
      }),
    cancelJob: ({ jobId, nowMs, ...order }) =>
      store.transaction(
        async (tx) => {
          const job = await tx.cancelJob(jobId, nowMs)
          // One that has ended stays as it is.
          if (job?.state === 'cancelled' && job.endedAtMs === nowMs) audit(tx, order, { kind: job.task.kind })
          return job
        },
        { announced: true },
      ),
  }
}

interface UnendedReplay extends UnendedJob {
  readonly task: ReplayJobTask
}

function isReplay(job: UnendedJob): job is UnendedReplay {
  return job.task.kind === 'replay'
}

async function workOn(tx: WriteTx, job: UnendedReplay, limit: number, nowMs: number): Promise<UnendedJob> {
  const { selection, to, untilMs } = job.task
  const batch = await replayBatch(tx, { selection, to, untilMs, after: job.place, limit, nowMs })
  if (batch === null) return { ...job, state: 'failed', failure: 'The endpoint was removed.', endedAtMs: nowMs }
  const done = job.done + batch.count
  if (batch.next === null) return { ...job, state: 'done', done, endedAtMs: nowMs }
  return { ...job, state: 'running', done, place: batch.next }
}

async function replayBatch(tx: WriteTx, request: ReplayRequest): Promise<ReplayedBatch | null> {
  const to = (await tx.listEndpoints()).find(({ endpoint }) => endpoint.id === request.to)
  // It was removed meanwhile, or gets the same from the feed while it catches up.
  return to === undefined || to.queuedTo !== null ? null : await tx.replayDeliveries(request)
}
