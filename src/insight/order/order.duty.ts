import type { Duty } from '../../core/flow/ports.ts'
import type { DutyParts } from '../../core/wiring/relay.ts'

const LOOK_EVERY_MS = 3_600_000
const BATCH_SIZE = 500

/**
 * Removes orders whose parcels are gone: during an upgrade an older replica, which does not know orders, may erase, retire or join parcels. Looks
 * when this replica takes the role, and every hour.
 */
export function orderDuty({ write, clock }: Pick<DutyParts, 'write' | 'clock'>): Duty {
  let [after, dueMs] = [0, clock.monotonic()]
  return {
    role: 'janitor',
    everyMs: LOOK_EVERY_MS,
    afterOrders: true,
    failure: 'orders of parcels that are gone could not be removed; the relay retries',
    async pass() {
      if (clock.monotonic() < dueMs) return 'idle'
      const next = await write.dropLostOrders({ after, limit: BATCH_SIZE })
      after = next ?? 0
      // Somewhat less, because the next look begins an hour after this one began.
      if (next === null) dueMs = clock.monotonic() + LOOK_EVERY_MS / 2
      return next === null ? 'idle' : 'busy'
    },
  }
}
