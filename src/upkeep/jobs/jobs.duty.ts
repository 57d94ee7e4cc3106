import type { Duty } from '../../core/flow/ports.ts'
import type { Capabilities } from '../../core/wiring/capabilities.ts'
import type { DutyParts } from '../../core/wiring/relay.ts'

/** Small, because a push that arrives during a job waits for up to one batch. */
const BATCH_SIZE = 100
/** A job may wait for room on the disk. */
const LOOK_EVERY_MS = 60_000

export function jobsDuty({ write, clock, meter, duties, reprocessed, retired, delivery }: DutyParts & Capabilities): Duty {
  const { inTurn } = duties
  return {
    role: 'janitor',
    everyMs: LOOK_EVERY_MS,
    afterOrders: true,
    needsRoom: true,
    failure: 'part of a background job failed; the relay retries',
    async pass() {
      // Cancel before working on jobs, because a job may replay deliveries that are to be cancelled.
      if (!(await inTurn(() => write.cancelRemoved({ limit: BATCH_SIZE }))).isDone) return 'busy'
      const { hasWorked, hasRetired, isDone, report, rebuilt } = await inTurn(() =>
        write.workOnJobs({ limit: BATCH_SIZE, nowMs: clock.now() }),
      )
      if (report !== null) reprocessed(report)
      if (hasRetired || rebuilt?.hasChanged === true) retired()
      if (rebuilt !== null) meter.rebuilt(rebuilt)
      // A rebuild changes no delivery.
      else if (hasWorked) delivery.review()
      return isDone ? 'idle' : 'busy'
    },
  }
}
