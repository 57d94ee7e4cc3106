import type { Duty } from '../../core/flow/ports.ts'
import type { DutyParts } from '../../core/wiring/relay.ts'

const LOOK_EVERY_MS = 5000

/** Notifies operators of restores, once, because no store is restored while a relay uses it. */
export function restoreDuty({ write, clock, wakeDispatcher }: DutyParts): Duty {
  let hasTold = false
  return {
    role: 'janitor',
    everyMs: LOOK_EVERY_MS,
    failure: 'operators could not be notified of a restore; the relay retries',
    async pass() {
      if (!hasTold && (await write.tellRestores({ nowMs: clock.now() })) > 0) wakeDispatcher()
      hasTold = true
      return 'idle'
    },
  }
}
