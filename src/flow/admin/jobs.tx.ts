import type { UnendedJob } from '../../domain/admin/job.ts'
import type { ReplayedBatch, ReplayRequest } from '../../domain/delivery/delivery-list.ts'
import type { WriteSide } from '../write-side.ts'
import type { WriteStore, WriteTx } from '../write-store.ts'

export type Jobs = Pick<WriteSide, 'replayDeliveries' | 'cancelRemoved' | 'startJob' | 'workOnJobs' | 'cancelJob'>

/** So many may wait for their turn. */
const UNENDED_MAX = 100

/**
 * What changes more rows than pushes may wait for, a stretch at a time. A job is written down with how far it is, in the transaction of each
 * stretch: a relay that dies goes on exactly there when it starts. One is worked on at a time, the oldest.
 */
export function createJobs(store: WriteStore): Jobs {
  return {
    replayDeliveries: (request) => store.transaction((tx) => replayBatch(tx, request)),
    cancelRemoved: ({ limit }) => store.transaction((tx) => tx.cancelRemoved(limit)),
    startJob: ({ task, by, nowMs }) =>
      store.transaction(async (tx) => {
        if ((await tx.listUnendedJobs(UNENDED_MAX)).length === UNENDED_MAX) return null
        return await tx.insertJob(task, by, nowMs)
      }),
    workOnJobs: ({ limit, nowMs }) =>
      store.transaction(async (tx) => {
        const [job, ...others] = await tx.listUnendedJobs(2)
        if (job === undefined) return { isDone: true }
        const after = await workOn(tx, job, limit, nowMs)
        await tx.saveJob(after, nowMs)
        return { isDone: after.endedAtMs !== null && others.length === 0 }
      }),
    cancelJob: ({ jobId, nowMs }) => store.transaction((tx) => tx.cancelJob(jobId, nowMs)),
  }
}

async function workOn(tx: WriteTx, job: UnendedJob, limit: number, nowMs: number): Promise<UnendedJob> {
  const { selection, to, untilMs } = job.task
  const stretch = await replayBatch(tx, { selection, to, untilMs, after: job.place, limit, nowMs })
  if (stretch === null) return { ...job, state: 'failed', failure: 'The endpoint was removed.', endedAtMs: nowMs }
  const done = job.done + stretch.count
  if (stretch.next === null) return { ...job, state: 'done', done, endedAtMs: nowMs }
  return { ...job, state: 'running', done, place: stretch.next }
}

async function replayBatch(tx: WriteTx, request: ReplayRequest): Promise<ReplayedBatch | null> {
  const to = (await tx.listEndpoints()).find(({ endpoint }) => endpoint.id === request.to)
  // Removed meanwhile, or about to be queued the same from the feed.
  return to === undefined || to.queuedTo !== null ? null : await tx.replayDeliveries(request)
}
