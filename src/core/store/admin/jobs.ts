import { sql } from 'kysely'
import type { Job, JobTask } from '../../domain/admin/job.ts'
import { decodeJob, encodeJobCursor, isReadableJob } from '../codec.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'

const KEPT_MAX = 1000

const insert = statement<{ kind: string; task: string; by: string; nowMs: number }>()((db, p) =>
  db
    .insertInto('job')
    .values({ kind: p.kind, task: p.task, started_by: p.by, state: 'waiting', done: 0, created_at_ms: p.nowMs })
    .returningAll(),
)
const unended = statement<{ limit: number }>()((db, p) =>
  db.selectFrom('job').selectAll().where('ended_at_ms', 'is', null).orderBy('id').limit(p.limit),
)
const update = statement<{
  id: number
  state: string
  place: string | null
  done: number
  failure: string | null
  nowMs: number
  endedAtMs: number | null
}>()((db, p) =>
  db
    .updateTable('job')
    .set((row) => ({
      state: p.state,
      place: p.place,
      done: p.done,
      failure: p.failure,
      started_at_ms: row.fn.coalesce('started_at_ms', row.val(p.nowMs)),
      ended_at_ms: p.endedAtMs,
    }))
    .where('id', '=', p.id),
)
const cancel = statement<{ id: number; nowMs: number }>()((db, p) =>
  db.updateTable('job').set({ state: 'cancelled', ended_at_ms: p.nowMs }).where('id', '=', p.id).where('ended_at_ms', 'is', null),
)
const giveUp = statement<{ id: number }>()((db, p) =>
  db
    .updateTable('job')
    .set((row) => ({ state: 'failed', failure: 'The stored order of the job cannot be read.', ended_at_ms: row.ref('created_at_ms') }))
    .where('id', '=', p.id),
)
const one = statement<{ id: number }>()((db, p) => db.selectFrom('job').selectAll().where('id', '=', p.id))
const page = statement<{ before: number; limit: number }>()((db, p) =>
  db.selectFrom('job').selectAll().where('id', '<', p.before).orderBy('id', 'desc').limit(p.limit),
)
const forget = statement<{ upTo: number }>()((db, p) => db.deleteFrom('job').where('id', '<=', p.upTo).where('ended_at_ms', 'is not', null))

const markReported = statement()((db) =>
  db
    .updateTable('job')
    .set({ end_told: sql.lit(1) })
    .where('ended_at_ms', 'is not', null)
    .where('end_told', '=', sql.lit(0))
    .returningAll(),
)

export async function insertJob(session: Session, task: JobTask, by: string, nowMs: number): Promise<Job> {
  const [row] = await session.all(insert, { kind: task.kind, task: JSON.stringify(task), by, nowMs })
  if (row === undefined) throw new Error('the insert of a job returned no id')
  await session.run(forget, { upTo: row.id - KEPT_MAX })
  return decodeJob(row)
}

/** Lists the jobs that have not ended, oldest first. Jobs that cannot be read fail, so that they do not hold up the others. */
export async function listUnendedJobs(session: Session, limit: number): Promise<readonly Job[]> {
  const rows = await session.all(unended, { limit })
  for (const { id } of rows.filter((row) => !isReadableJob(row))) session.enqueueWrite(giveUp, { id })
  return rows.filter(isReadableJob).map(decodeJob)
}

/** Lists the damaged rows of jobs that have not ended, for the log. */
export async function listDamagedJobs(session: Session): Promise<readonly string[]> {
  const rows = await session.all(unended, { limit: KEPT_MAX })
  return rows.filter((row) => !isReadableJob(row)).map(({ id, kind }) => `job ${id} (${kind})`)
}

export async function saveJob(session: Session, job: Job, nowMs: number): Promise<void> {
  const { jobId, state, cursor, done, failure, endedAtMs } = job
  await session.run(update, { id: jobId, state, place: encodeJobCursor(cursor), done, failure, nowMs, endedAtMs })
}

/** Cancels a job unless it has ended. Returns the job. Null: there is no such job. */
export async function cancelJob(session: Session, id: number, nowMs: number): Promise<Job | null> {
  await session.run(cancel, { id, nowMs })
  return await findJob(session, id)
}

export async function findJob(session: Session, id: number): Promise<Job | null> {
  const [row] = await session.all(one, { id })
  return row === undefined || !isReadableJob(row) ? null : decodeJob(row)
}

/** Lists jobs, newest first. Leaves out jobs that cannot be read. */
export async function listJobs(
  session: Session,
  query: { readonly before: number | null; readonly limit: number },
): Promise<readonly Job[]> {
  const rows = await session.all(page, { before: query.before ?? Number.MAX_SAFE_INTEGER, limit: query.limit })
  const jobs = rows.filter(isReadableJob).map(decodeJob)
  const last = rows.at(-1)
  if (last === undefined || rows.length < query.limit || jobs.length === query.limit) return jobs
  return [...jobs, ...(await listJobs(session, { before: last.id, limit: query.limit - jobs.length }))]
}

/** Returns the ended jobs that operators were not notified of, oldest first, and marks them as notified. */
export async function takeEndedJobs(session: Session): Promise<readonly Job[]> {
  const rows = await session.all(markReported, {})
  return rows
    .filter(isReadableJob)
    .map(decodeJob)
    .toSorted((a, b) => a.jobId - b.jobId)
}
