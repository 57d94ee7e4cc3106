import { createJanitor, type JanitorPass, type JanitorPorts } from '../../flow/delivery/janitor.ts'
import { createFailureLog } from '../../flow/log-digest.ts'
import { startRepeating } from '../../runtime/schedule.ts'
import { createWakeupTimer, startWorker } from '../../runtime/worker.ts'
import type { Relay } from '../relay.ts'

const LOOK_AT_RETENTION_MS = 60_000
/** How long a worker rests after a failed pass, in milliseconds. */
const REST_MS = 1000

type StartPorts = JanitorPorts & Pick<Relay, 'log' | 'clock'>

/** Starts the workers that do the long work of delivery, the inbox and retention while this replica is the janitor. */
export function startJanitor(ports: StartPorts) {
  const { replayFeed, workOnJobs, prune } = createJanitor(ports)
  const feedReplay = startRetryingWorker(replayFeed, ports, 'cannot queue events of the feed for an endpoint; the relay retries')
  const longWork = startRetryingWorker(workOnJobs, ports, 'part of a background job failed; the relay retries')
  const retention = startRetryingWorker(prune, ports, 'a part of a retention pass failed; the relay retries')
  const looking = startRepeating(async () => {
    retention.wake()
    // A job may wait for room on the disk.
    longWork.wake()
  }, LOOK_AT_RETENTION_MS)
  const workers = [feedReplay, longWork, retention]
  return {
    wake() {
      feedReplay.wake()
      longWork.wake()
    },
    async rests(): Promise<void> {
      await Promise.all(workers.map((worker) => worker.rests()))
    },
    async stop(): Promise<void> {
      looking.stop()
      for (const worker of workers) await worker.stop()
    },
  }
}

/** Starts a worker that tries again by itself after a failed pass. Once this replica is not the janitor any more, a failure is no error. */
function startRetryingWorker(pass: JanitorPass, { log, clock, holds }: StartPorts, failure: string) {
  const failures = createFailureLog({ log, clock })
  const worker = startWorker(pass, (error) => {
    if (holds()) failures.add('error', { err: error }, failure)
    else log.debug({ err: error }, failure)
    timer.set(clock.now() + REST_MS)
  })
  const timer = createWakeupTimer(worker.wake, clock.now)
  return {
    wake: worker.wake,
    rests: worker.rests,
    async stop() {
      await worker.stop()
      // Cancel the timer after the last pass, which may have set it.
      timer.cancel()
    },
  }
}
