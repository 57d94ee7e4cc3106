import { setTimeout as pause } from 'node:timers/promises'
import { type AskRelay, type ClientOptions, describeProblem } from '../../console/cli/asking/ask-relay.ts'
import { fail } from '../../console/cli/exit-codes.ts'
import { createProgressLine } from '../../console/cli/terminal.ts'
import type { JobAnswer } from './jobs.routes.ts'

const LOOK_EVERY_MS = 500
/** The relay may be silent for this long, for example while a new version of it takes over. After that, following the job fails. */
const SILENCE_MS_MAX = 30_000

/** The name of each step, and the unit of its count. The key `whole` is for a job that reports no steps. */
export type StepNames = Readonly<Record<string, readonly [name: string, unit: string]>>

interface JobOrder {
  readonly path: string
  /** Sent as JSON; absent: there is no body. */
  readonly body?: object
  readonly steps: StepNames
  /** What to say if the job is cancelled. */
  readonly cancelled: string
}

/** Orders a job and follows it to its end. Returns it if there is more to say; null: it was refused or did not succeed, or `--json` has printed it. */
export async function runJob(ask: AskRelay, { path, body, steps, cancelled }: JobOrder, options: ClientOptions): Promise<JobAnswer | null> {
  const started = await ask<JobAnswer>('POST', path, body && { type: 'application/json', text: JSON.stringify(body) })
  if (!started.ok) fail(describeProblem(started))
  return started.ok ? reportJob(await followJob(ask, started.body.id, steps), cancelled, options) : null
}

/** Prints a job that has ended, and fails if it did not succeed. Returns it if there is more to say. */
export function reportJob(job: JobAnswer, cancelled: string, { json }: ClientOptions): JobAnswer | null {
  if (json === true) process.stdout.write(`${JSON.stringify(job)}\n`)
  if (job.state === 'cancelled') fail(cancelled)
  else if (job.state !== 'done') fail(job.failure ?? `the job ended as ${job.state}`)
  return job.state === 'done' && json !== true ? job : null
}

/** Shows the progress of a job until it ends, then returns the job. Ctrl-C cancels it. */
export async function followJob(ask: AskRelay, id: string, steps: StepNames): Promise<JobAnswer> {
  const cancel = () => void ask('DELETE', `/relay/jobs/${id}`).catch(() => undefined)
  process.once('SIGINT', cancel)
  try {
    return await untilEnded(ask, id, steps)
  } finally {
    process.off('SIGINT', cancel)
  }
}

interface Progress {
  readonly done: number
  readonly total?: number | undefined
  readonly step?: string | undefined
}

async function untilEnded(ask: AskRelay, id: string, steps: StepNames): Promise<JobAnswer> {
  const line = createProgressLine(process.stderr)
  for (let silentMs = 0; ; ) {
    const job = await ask<JobAnswer>('GET', `/relay/jobs/${id}`).catch(() => null)
    if (job?.ok === true) {
      silentMs = 0
      if (job.body.endedAt !== null) {
        line.end()
        return job.body
      }
      const { done, total = 0, step = 'whole' }: Progress = job.body.progress
      const [name, unit] = steps[step] ?? [step, '']
      if (step in steps || step !== 'whole') line.show(name, done, total, unit)
    } else silentMs += LOOK_EVERY_MS
    if (silentMs > SILENCE_MS_MAX)
      throw new Error(`the relay has not answered for ${SILENCE_MS_MAX / 1000} s: look at its log, and at job ${id} when it is back`)
    await pause(LOOK_EVERY_MS)
  }
}
