import { setTimeout as pause } from 'node:timers/promises'
import { type AskRelay, memberOf, textOf } from './ask-relay.ts'
import { createProgressLine } from './progress-line.ts'

const LOOK_EVERY_MS = 500
/** The relay may be silent for this long, for example while a new version of it takes over. After that, following the job fails. */
const SILENCE_MS_MAX = 30_000

/** The name of each step, and the unit of its count. The key `whole` is for a job that reports no steps. */
export type StepNames = Readonly<Record<string, readonly [name: string, unit: string]>>

/** Shows the progress of a job until it ends, then returns the job. Ctrl-C cancels it. */
export async function followJob(ask: AskRelay, id: string, steps: StepNames): Promise<unknown> {
  const cancel = () => void ask('DELETE', `/relay/jobs/${id}`).catch(() => undefined)
  process.once('SIGINT', cancel)
  try {
    return await untilEnded(ask, id, steps)
  } finally {
    process.off('SIGINT', cancel)
  }
}

async function untilEnded(ask: AskRelay, id: string, steps: StepNames): Promise<unknown> {
  const line = createProgressLine(process.stderr)
  for (let silentMs = 0; ; ) {
    const job = await ask('GET', `/relay/jobs/${id}`).catch(() => null)
    if (job?.status === 200) {
      silentMs = 0
      if (textOf(job.body, 'endedAt') !== null) {
        line.end()
        return job.body
      }
      const progress = memberOf(job.body, 'progress')
      const step = textOf(progress, 'step') ?? ('whole' in steps ? 'whole' : null)
      if (step !== null) {
        const [name, unit] = steps[step] ?? [step, '']
        line.show(name, Number(memberOf(progress, 'done')), Number(memberOf(progress, 'total')), unit)
      }
    } else silentMs += LOOK_EVERY_MS
    if (silentMs > SILENCE_MS_MAX)
      throw new Error(`the relay has not answered for ${SILENCE_MS_MAX / 1000} s: look at its log, and at job ${id} when it is back`)
    await pause(LOOK_EVERY_MS)
  }
}
