import type Router from '@koa/router'
import type { Job, ReplayJobTask } from '../../domain/admin/job.ts'
import type { MoveProgress } from '../../domain/admin/store-move.ts'
import type { ManageJobs } from '../../flow/admin/manage-jobs.ts'
import type { ManageMoves } from '../../flow/admin/manage-moves.ts'
import { createApiRoutes } from '../server/api-routes.ts'
import type { Authorize } from '../server/authorize.ts'
import { presentInstant, presentJson } from '../server/present.ts'
import { count, NO_QUERY, page, query } from '../server/query.ts'

export interface JobsRouteOptions {
  readonly manageJobs: ManageJobs
  readonly moves: Pick<ManageMoves, 'progressOf'>
  readonly authorize: Authorize
}

/** Background jobs, their progress and result, under /relay (scope `admin`). */
export function jobsRoutes({ manageJobs, moves, authorize }: JobsRouteOptions): Router {
  const routes = createApiRoutes(authorize)
  const present = (job: Job) => presentJob(job, moves.progressOf(job.jobId))
  routes.add('get', '/relay/jobs', {
    scope: 'admin',
    query: query({ ...page, cursor: count.nullable().default(null) }),
    answer: async (ctx, call) => {
      const { jobs, next } = await manageJobs.list(call.query)
      presentJson(ctx, 200, { jobs: jobs.map(present), next })
    },
  })
  routes.add('get', '/relay/jobs/:id', {
    scope: 'admin',
    query: NO_QUERY,
    answer: async (ctx, { param }) => presentJson(ctx, 200, present(await manageJobs.find(param('id')))),
  })
  routes.add('delete', '/relay/jobs/:id', {
    scope: 'admin',
    query: NO_QUERY,
    answer: async (ctx, { param }) => presentJson(ctx, 200, present(await manageJobs.cancel(param('id')))),
  })
  return routes.router
}

export function pathOfJob({ jobId }: Job): string {
  return `/relay/jobs/${jobId}`
}

/** `moving`: how far a move is that runs now. */
export function presentJob(job: Job, moving: MoveProgress | null = null): object {
  const { jobId, task, state, by, done, failure, createdAtMs, startedAtMs, endedAtMs } = job
  return {
    id: String(jobId),
    kind: task.kind,
    state,
    progress: moving ?? { done },
    by,
    createdAt: presentInstant(createdAtMs),
    startedAt: presentInstant(startedAtMs),
    endedAt: presentInstant(endedAtMs),
    result: state === 'done' ? { count: done } : null,
    failure,
    task: task.kind === 'move' ? { to: task.to } : presentReplay(task),
  }
}

function presentReplay({ to, selection }: ReplayJobTask): object {
  const { endpointId, states, fromSequence, fromMs, sequence, parcelId } = selection
  return {
    endpoint: to,
    of: endpointId,
    states,
    ...(fromSequence > 0 ? { since: fromSequence } : {}),
    ...(fromMs > 0 ? { since: presentInstant(fromMs) } : {}),
    ...(sequence === null ? {} : { sequence }),
    ...(parcelId === null ? {} : { parcel: parcelId }),
  }
}
