import {
  CLOCK_SETTING,
  type ClockDoubt,
  type ClockReading,
  type ClockRecord,
  contradictionOf,
  decodeClockRecord,
  doubtOf,
  noteClock,
  type OtherClocks,
} from '../../domain/admin/clock-record.ts'
import type { Transactions } from '../../store/write-store.ts'
import type { Clock } from '../ports.ts'

/** Compares the wall clock with the monotonic clock, and with the clocks of others. */
export type ClockWatch = ReturnType<typeof createClockWatch>

/** @param stored what the last process has stored; null: nothing. @param process a name that no other process has. */
export function createClockWatch(clock: Clock, process: string, stored: ClockRecord | null) {
  const reading = (): ClockReading => ({ process, wallMs: clock.now(), monotonicMs: clock.monotonic() })
  let record = noteClock(stored, reading())
  let others: OtherClocks = { carrierAheadMs: null, machineAheadMs: null }
  return {
    /** Compares the clocks now. Null: nothing speaks against the wall clock. */
    doubt(): ClockDoubt | null {
      record = noteClock(record, reading())
      return doubtOf(record, others)
    },
    /** What other clocks say against ours; null: nothing. */
    contradiction: (): ClockDoubt | null => contradictionOf(others),
    /** Notes how other clocks differ from ours now. */
    learn(told: OtherClocks) {
      others = told
    },
    reading,
  }
}

export async function loadClockRecord(store: Transactions): Promise<ClockRecord | null> {
  return decodeClockRecord(await store.transaction((tx) => tx.loadSetting(CLOCK_SETTING)))
}
