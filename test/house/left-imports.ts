/** Imports against the table of wings that are left: a line goes when its import goes, and none is added. */
export const LEFT: readonly string[] = [
  'console/api/inbox.routes.ts upkeep/jobs/jobs.routes.ts',
  'console/cli/inbox.ts upkeep/jobs/follow-job.ts',
  'console/cli/inbox.ts upkeep/jobs/jobs.routes.ts',
  'console/cli/inbox.ts upkeep/refusals/refusals.routes.ts',
  'console/cli/replay.ts upkeep/jobs/follow-job.ts',
  'core/http/delivery/deliveries.routes.ts upkeep/jobs/jobs.routes.ts',
]
