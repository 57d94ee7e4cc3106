import { randomUUID } from 'node:crypto'
import { startRepeating } from '../../core/runtime/schedule.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { createTallies, type Tallies } from '../tallies/tallies.ts'

/** How often the counts are written, in milliseconds. If the relay is killed, it loses the counts since then. */
const FLUSH_MS = 10_000

type Parts = Pick<Relay, 'write' | 'disk' | 'clock' | 'unstored' | 'closing' | 'log'>

/** Begins to count events by the hour. */
export function openTallies({ write, disk, clock, unstored, closing, log }: Parts): Tallies {
  const tallies = createTallies({ write, process: randomUUID(), clock, freeBytes: () => disk.state().freeBytes })
  unstored.add(() => tallies.unflushed().map((flush) => ({ kind: 'tallies', flush })))
  const flushing = startRepeating(
    () => tallies.flush().catch((err: unknown) => log.debug({ err }, 'cannot write the counts now; the relay tries again')),
    FLUSH_MS,
  )
  closing.add(() => flushing.stop())
  closing.add(() => tallies.flush().catch((err: unknown) => log.debug({ err }, 'the last counts could not be written')))
  return tallies
}
