import type Router from '@koa/router'
import type { Job } from '../../domain/admin/job.ts'
import type { ManageJobs } from '../../flow/admin/manage-jobs.ts'
import { createApiRoutes } from '../server/api-routes.ts'
import type { Authorize } from '../server/authorize.ts'
import { presentInstant, presentJson } from '../server/present.ts'
import { count, NO_QUERY, page, query } from '../server/query.ts'

export interface JobsRouteOptions {
  readonly manageJobs: ManageJobs
  readonly authorize: Authorize
}

/** Background jobs, their progress and result, under /relay (scope `admin`). */
export function jobsRoutes({ manageJobs, authorize }: JobsRouteOptions): Router {
  const routes = createApiRoutes(authorize)
  routes.add('get', '/relay/jobs', {
    scope: 'admin',
    query: query({ ...page, cursor: count.nullable().default(null) }),
    answer: async (ctx, call) => {
      const { jobs, next } = await manageJobs.list(call.query)
      presentJson(ctx, 200, { jobs: jobs.map(presentJob), next })
    },
  })
  routes.add('get', '/relay/jobs/:id', {
    scope: 'admin',
    query: NO_QUERY,
    answer: async (ctx, { param }) => presentJson(ctx, 200, presentJob(await manageJobs.find(param('id')))),
  })
  routes.add('delete', '/relay/jobs/:id', {
    scope: 'admin',
    query: NO_QUERY,
    answer: async (ctx, { param }) => presentJson(ctx, 200, presentJob(await manageJobs.cancel(param('id')))),
  })
  return routes.router
}

export function pathOfJob({ jobId }: Job): string {
  return `/relay/jobs/${jobId}`
}

export function presentJob({ jobId, task, state, by, done, failure, createdAtMs, startedAtMs, endedAtMs }: Job): object {
  const { endpointId, states, fromSequence, fromMs, sequence, parcelId } = task.selection
  return {
    id: String(jobId),
    kind: task.kind,
    state,
    progress: { done },
    by,
    createdAt: presentInstant(createdAtMs),
    startedAt: presentInstant(startedAtMs),
    endedAt: presentInstant(endedAtMs),
    result: state === 'done' ? { count: done } : null,
    failure,
    task: {
      endpoint: task.to,
      of: endpointId,
      states,
      ...(fromSequence > 0 ? { since: fromSequence } : {}),
      ...(fromMs > 0 ? { since: presentInstant(fromMs) } : {}),
      ...(sequence === null ? {} : { sequence }),
      ...(parcelId === null ? {} : { parcel: parcelId }),
    },
  }
}
