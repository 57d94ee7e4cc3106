import type { Config } from '../config/config.ts'
import { startRepeating, startSchedule } from '../runtime/schedule.ts'
import type { Capabilities } from './capabilities.ts'
import type { Relay } from './relay.ts'

/** How often the free disk space is measured. The relay refuses pushes before the disk is full, and accepts pushes soon after there is room. */
const DISK_LOOK_MS = 500
const DIGEST_LOOK_MS = 5000
/** How often expired tokens and sessions are looked for, so that access ends within a second after they expire. */
const ACCESS_LOOK_MS = 250
/** How often the relay checks whether the clock was set back, because it must then shift the schedule. It also checks when the poller wakes. */
const CLOCK_LOOK_MS = 5000
/** How often the relay checks whether it may ask a failing carrier again. It also checks when the poller wakes. */
const REST_LOOK_MS = 1000
/** How often a replica that does not poll asks the shared store whether the carrier fails. */
const OUTAGE_LOOK_MS = 5000

type Parts = Pick<Relay, 'clock' | 'disk' | 'digest' | 'carrier' | 'authenticate' | 'sessions' | 'closing'>

/** `pushesTaken` is called when the disk has room again. */
export function startTimers(config: Config, parts: Parts & Pick<Capabilities, 'polling'>, pushesTaken: () => Promise<void>): void {
  const { clock, disk, digest, carrier, authenticate, sessions, closing, polling } = parts
  const lookAtDisk = async () => {
    const before = disk.trouble()
    await disk.check()
    if (before !== null && disk.trouble() === null) await pushesTaken()
  }
  const looks = [
    startRepeating(lookAtDisk, DISK_LOOK_MS),
    startRepeating(async () => digest.flush(), DIGEST_LOOK_MS),
    startRepeating(async () => carrier.logOutage(), DIGEST_LOOK_MS),
    startRepeating(async () => authenticate.endExpired(), ACCESS_LOOK_MS),
    startRepeating(async () => {
      sessions.endExpired()
      // While the store cannot be read, the next look tries again.
      await sessions.endLoggedOut().catch(() => undefined)
    }, ACCESS_LOOK_MS),
    startRepeating(polling.lookAtClock, CLOCK_LOOK_MS),
    startRepeating(polling.lookAtRest, REST_LOOK_MS),
    startRepeating(polling.lookAtOutage, OUTAGE_LOOK_MS),
  ]
  for (const look of looks) closing.add(() => look.stop())
  const schedule = startSchedule(config.poll.cron, () => polling.poller.wake(), clock.now)
  closing.add(() => schedule.stop())
}
