import type { RemoteCarrier } from '../carrier/call/carrier-client.ts'
import type { OtherClocks } from '../domain/admin/clock-record.ts'
import { systemClock } from '../runtime/system-clock.ts'
import type { Storage } from './storage/opened-storage.ts'

/** Only a store on a server has another clock than this machine. */
export function otherClocksOf({ clock, shared }: Pick<Storage, 'clock' | 'shared'>, carrier: Pick<RemoteCarrier, 'aheadMs'>): OtherClocks {
  return { carrierAheadMs: carrier.aheadMs(), machineAheadMs: shared === null ? null : systemClock.now() - clock.now() }
}
