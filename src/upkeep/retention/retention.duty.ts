import type { Duty } from '../../core/flow/ports.ts'
import type { Capabilities } from '../../core/wiring/capabilities.ts'
import type { DutyParts } from '../../core/wiring/relay.ts'

const LOOK_EVERY_MS = 60_000

/** Removes what is no longer kept. */
export function retentionDuty({ write, clock, duties, retired, delivery }: DutyParts & Capabilities): Duty {
  return {
    role: 'janitor',
    everyMs: LOOK_EVERY_MS,
    needsRoom: true,
    failure: 'a part of a retention pass failed; the relay retries',
    async pass() {
      const { isDone, hasRetired, hasReordered } = await duties.inTurn(() => write.prune({ nowMs: clock.now() }))
      if (hasRetired) retired()
      if (hasReordered) delivery.review()
      return isDone ? 'idle' : 'busy'
    },
  }
}
