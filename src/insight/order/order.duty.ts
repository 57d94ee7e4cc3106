import type { Duty } from '../../core/flow/ports.ts'
import type { DutyParts } from '../../core/wiring/relay.ts'

const LOOK_EVERY_MS = 3_600_000
const BATCH_SIZE = 500

/** Removes orders whose parcels are gone: during an upgrade an older replica, which does not know orders, may erase, retire or join parcels. */
export function orderDuty({ write }: Pick<DutyParts, 'write'>): Duty {
  let after = 0
  return {
    role: 'janitor',
    everyMs: LOOK_EVERY_MS,
    failure: 'orders of parcels that are gone could not be removed; the relay retries',
    async pass() {
      const next = await write.dropLostOrders({ after, limit: BATCH_SIZE })
      after = next ?? 0
      return next === null ? 'idle' : 'busy'
    },
  }
}
