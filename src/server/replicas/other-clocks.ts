import type { OtherClocks } from '../../core/domain/admin/clock-record.ts'
import { systemClock } from '../../core/runtime/system-clock.ts'
import type { Relay } from '../../core/wiring/relay.ts'

/** Only a store on a server has another clock than this machine. */
export function otherClocksOf({ clock, shared, carrier }: Pick<Relay, 'clock' | 'shared' | 'carrier'>): OtherClocks {
  return { carrierAheadMs: carrier.aheadMs(), machineAheadMs: shared === null ? null : systemClock.now() - clock.now() }
}
