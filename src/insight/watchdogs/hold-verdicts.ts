import type { DutyParts } from '../../core/wiring/relay.ts'
import { countWaiting, heldSinceMs } from './watchdogs.rows.ts'

/** How often it is noted whether verdicts are held back. */
const NOTE_EVERY_MS = 5000
/** Operators are told when verdicts have been held back for this long. */
const TOLD_AFTER_MS = 3_600_000
const HELD_SUBJECT = 'watchdogs'

/** Notes since when verdicts are held back because the relay is deaf, and tells operators (DOMAIN 9.5). */
export function createHold({ write, reads, clock, wakeDispatcher }: Pick<DutyParts, 'write' | 'reads' | 'clock' | 'wakeDispatcher'>) {
  let notedAtMs = Number.NEGATIVE_INFINITY
  return {
    /** What the store holds decides, because another replica may have noted it. */
    async note(isDeaf: boolean, nowMs: number): Promise<void> {
      if (clock.monotonic() - notedAtMs < NOTE_EVERY_MS) return
      notedAtMs = clock.monotonic()
      const held = isDeaf ? await countWaiting(reads.session) : 0
      if (held === 0) {
        if ((await heldSinceMs(reads.session)) === null) return
        const event = { event: 'watchdogs_resumed' } as const
        if (await write.endTrouble({ subject: HELD_SUBJECT, event, nowMs, ofRole: 'poller' })) wakeDispatcher()
        // Last, so that a kill before it leaves what leads here again.
        await write.noteHeld({ sinceMs: null })
        return
      }
      const sinceMs = (await write.noteHeld({ sinceMs: nowMs })) ?? nowMs
      if (nowMs - sinceMs < TOLD_AFTER_MS) return
      const event = { event: 'watchdogs_held', held, since: new Date(sinceMs).toISOString() } as const
      if (await write.beginTrouble({ subject: HELD_SUBJECT, event, nowMs, ofRole: 'poller' })) wakeDispatcher()
    },
  }
}
