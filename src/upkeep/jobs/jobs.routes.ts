import { z } from 'zod'
import { type EventDescriptions, type EventsOf, text } from '../../console/events/operator-events.ts'
import type { Job, ReplayJobTask } from '../../core/domain/admin/job.ts'
import { type AnswerOf, idOf, instant, named, numberedId, presentInstant, wholeNumber } from '../../core/http/server/answer-schemas.ts'
import { count, page, query } from '../../core/http/server/route.ts'
import { callRoute, listRoute } from '../../core/http/server/route-shapes.ts'
import type { UseCases } from '../../core/http/use-cases.ts'
import { HELD_STATES } from '../inbox/manage-inbox.ts'
import { HISTORY_CHANGES } from '../rebuild/compare-histories.rules.ts'
import { type RebuildReport, rebuiltBy } from '../rebuild/rebuild.rules.ts'

export const JOB_EVENTS = {
  job_ended: {
    kind: 'ok',
    state: 'job ended',
    page: '/jobs',
    tell: (of) => [`The job ${of('job')} ended: ${of('state')}`],
    members: () => ({
      job: z.strictObject({ id: numberedId(), kind: text() }),
      state: text(),
      done: wholeNumber(),
      failure: text().nullable(),
    }),
  },
} satisfies EventDescriptions

declare module '../../core/domain/delivery/operator-event.ts' {
  interface OperatorEvents extends EventsOf<typeof JOB_EVENTS> {}
}

const jobMembers = () => ({
  id: numberedId(),
  state: z.enum(['waiting', 'running', 'done', 'failed', 'cancelled']),
  by: z.string().describe('The app that ordered the job.'),
  createdAt: instant(),
  startedAt: instant().nullable(),
  endedAt: instant().nullable(),
  result: z.strictObject({ count: wholeNumber() }).nullable().describe('Null until the job is done.'),
  failure: z.string().nullable().describe('Why the job failed, or was cancelled by an upgrade; null: neither.'),
})

const replayTask = () =>
  z.strictObject({
    endpoint: numberedId().describe('The endpoint for which deliveries are queued.'),
    of: numberedId().optional().describe('The endpoint whose deliveries are sent again.'),
    states: z.array(z.enum(['delivered', 'dead', 'cancelled'])).optional(),
    since: z.union([z.int().min(1), instant()]).optional(),
    sequence: wholeNumber().optional(),
    parcel: wholeNumber().optional().describe("The relay's own id of the parcel."),
  })

const rebuildReport = () =>
  z.strictObject({
    parcels: wholeNumber().describe('Parcels that were compared.'),
    fromSightings: wholeNumber().describe(
      'Parcels that were derived from their sightings, because some of their bytes are no longer kept.',
    ),
    damaged: wholeNumber().describe('Parcels that were derived from their sightings, because their bytes do not match their digests.'),
    left: wholeNumber().describe('Parcels that could not be compared and stay as they are.'),
    conflicts: wholeNumber().describe('Parcels whose bytes name an identifier that another parcel has. The other parcel keeps it.'),
    differing: wholeNumber().describe('Parcels with stored data that differs from what was derived.'),
    histories: wholeNumber().describe('Parcels whose history, as it is served, differs.'),
    changes: z.partialRecord(changeKind(), wholeNumber()).describe('The changes of histories, by kind.'),
    examples: z.array(
      z.strictObject({
        kind: changeKind(),
        parcel: wholeNumber().describe("The relay's own id of the parcel."),
        identifier: z.string().nullable().describe('An identifier of the parcel; null: the parcel no longer exists.'),
        entry: wholeNumber()
          .nullable()
          .describe('The id of the entry; null: it has none yet, or the change concerns the parcel as a whole.'),
        members: z.array(z.string()).describe('The members that differ; empty: the kind says everything.'),
      }),
    ),
    stored: z.string().describe('A digest of everything that was compared, as it was stored.'),
    derived: z.string().describe('A digest of the same data, as it was derived. Equal digests prove that nothing differs.'),
  })

const changeKind = () => z.enum(HISTORY_CHANGES)

/** The step is known only while the job runs. */
const stepProgress = <const Step extends string>(steps: readonly Step[]) =>
  z.strictObject({ done: wholeNumber(), step: z.enum(steps).optional(), total: wholeNumber().optional() })

export const jobSchema = named('Job', () =>
  z.discriminatedUnion('kind', [
    z.strictObject({
      ...jobMembers(),
      kind: z.literal('replay'),
      progress: z.strictObject({ done: wholeNumber() }),
      task: replayTask(),
    }),
    z.strictObject({
      ...jobMembers(),
      kind: z.literal('reprocess'),
      progress: z.strictObject({ done: wholeNumber() }),
      task: z.strictObject({ state: z.enum(HELD_STATES), reason: z.string().nullable() }).describe('The pushes that are reprocessed.'),
    }),
    z.strictObject({
      ...jobMembers(),
      kind: z.literal('dismiss'),
      progress: z.strictObject({ done: wholeNumber() }),
      task: z.strictObject({ state: z.literal('quarantined'), reason: z.string().nullable() }).describe('The pushes that are dismissed.'),
    }),
    z.strictObject({
      ...jobMembers(),
      kind: z.literal('retention'),
      progress: z.strictObject({ done: wholeNumber() }),
      task: z.strictObject({}),
    }),
    z.strictObject({
      ...jobMembers(),
      kind: z.literal('rebuild'),
      progress: z.strictObject({
        done: wholeNumber(),
        total: wholeNumber().describe('How many parcels there were when it was ordered.'),
      }),
      task: z.strictObject({
        dryRun: z.boolean(),
        parcels: z.array(wholeNumber()).nullable().describe("The relay's own ids of the parcels; null: all."),
      }),
      report: rebuildReport().nullable().describe('What the job has found so far; null: it has not begun.'),
    }),
    z.strictObject({
      ...jobMembers(),
      kind: z.literal('move'),
      progress: stepProgress(['copying', 'catching_up', 'verifying', 'waiting', 'switching']),
      task: z.strictObject({ to: z.string() }),
    }),
    z.strictObject({
      ...jobMembers(),
      kind: z.literal('backup'),
      progress: stepProgress(['copying', 'verifying', 'placing']),
      task: z.strictObject({ name: z.string() }),
    }),
  ]),
)

export type JobAnswer = AnswerOf<typeof jobSchema>

const one = { params: { id: idOf('job') }, answers: { 200: ['The job', jobSchema] } } as const

/** Background jobs, their progress and result. */
export const JOBS_ROUTES = [
  listRoute('/relay/jobs', {
    summary: 'List jobs',
    description:
      'Long replays, pushes that are reprocessed or dismissed, backups, retention passes, rebuilds, and moves of the store, newest first.',
    query: query({ ...page, cursor: count.nullable().default(null) }),
    items: ['jobs', jobSchema],
    example: 'limit=10',
    read: ({ manageJobs }, asked) => manageJobs.list(asked),
    present: presentJob,
  }),
  callRoute('get', '/relay/jobs/:id', {
    ...one,
    summary: 'Show a job and its progress',
    problems: ['not_found'],
    answer: async (ports, { param }) => [200, presentJob(await ports.manageJobs.find(param('id')), ports)],
  }),
  callRoute('delete', '/relay/jobs/:id', {
    ...one,
    summary: 'Cancel a job',
    description: 'The job stops where it is. A job that has ended is left as it is.',
    problems: ['not_found'],
    answer: async (ports, { by, param }) => [200, presentJob(await ports.manageJobs.cancel(param('id'), by), ports)],
  }),
]

/** What tells the progress of a move or a backup while it runs. */
type Progress = Pick<UseCases, 'moves' | 'manageBackups'>

/** Answers an order that has become a job. */
export function startedJob(job: Job, progress: Progress): readonly [status: 202, body: JobAnswer, location: string] {
  return [202, presentJob(job, progress), `/relay/jobs/${job.jobId}`]
}

/** Presents a job. A move and a backup tell the progress of their steps while they run. */
function presentJob(job: Job, { moves, manageBackups }: Progress): JobAnswer {
  const { jobId, task, state, by, done, failure } = job
  const shared = {
    id: String(jobId),
    kind: task.kind,
    state,
    progress: { done },
    by,
    createdAt: presentInstant(job.createdAtMs),
    startedAt: presentInstant(job.startedAtMs),
    endedAt: presentInstant(job.endedAtMs),
    result: state === 'done' ? { count: done } : null,
    failure,
  }
  switch (task.kind) {
    case 'move':
      return { ...shared, kind: task.kind, progress: moves.progressOf(jobId) ?? { done }, task: { to: task.to } }
    case 'backup':
      return { ...shared, kind: task.kind, progress: manageBackups.progressOf(jobId) ?? { done }, task: { name: task.name } }
    case 'retention':
      return { ...shared, kind: task.kind, task: {} }
    case 'rebuild': {
      const { dryRun, parcels, total } = task
      const rebuilt = rebuiltBy(job)
      const report = rebuilt === null ? null : presentReport(rebuilt)
      return { ...shared, kind: task.kind, progress: { done, total }, task: { dryRun, parcels }, report }
    }
    case 'reprocess':
      return { ...shared, kind: task.kind, task: task.selection }
    case 'dismiss':
      return { ...shared, kind: task.kind, task: task.selection }
    case 'replay':
      return { ...shared, kind: task.kind, task: presentReplay(task) }
  }
}

function presentReport({ examples, ...report }: RebuildReport) {
  return {
    ...report,
    examples: examples.map(({ parcelId, identifier = null, ...example }) => ({ ...example, parcel: parcelId, identifier })),
  }
}

function presentReplay({ to, selection }: ReplayJobTask) {
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
