import { createTallies, type Tallies } from '../flow/admin/tallies.ts'
import type { Log } from '../flow/ports.ts'
import { startRepeating } from '../runtime/repeating.ts'
import type { Closing } from './closing.ts'
import type { Storage } from './opened-storage.ts'

/** How much may be lost by a kill. */
const FLUSH_MS = 10_000
const PRUNE_MS = 3_600_000
const PRUNED_AT_ONCE = 500

/** Begins to count by the hour, and to forget the hours and days that are no longer kept. */
export function openTallies(storage: Pick<Storage, 'write' | 'disk' | 'clock' | 'replicas'>, closing: Closing, log: Log): Tallies {
  const { write, disk, clock, replicas } = storage
  const tallies = createTallies({ write, clock, freeBytes: () => disk.state().freeBytes })
  const prune = async () => {
    while (replicas.holds('janitor') && !(await write.pruneTallies({ nowMs: clock.now(), limit: PRUNED_AT_ONCE })).isDone);
  }
  const often = (work: () => Promise<void>, everyMs: number) =>
    startRepeating(
      () => work().catch((err: unknown) => log.debug({ err }, 'what was counted cannot be written now; the relay tries again')),
      everyMs,
    )
  for (const repeated of [often(tallies.flush, FLUSH_MS), often(prune, PRUNE_MS)]) closing.add(() => repeated.stop())
  closing.add(() => tallies.flush().catch((err: unknown) => log.debug({ err }, 'the last counts could not be written')))
  return tallies
}
