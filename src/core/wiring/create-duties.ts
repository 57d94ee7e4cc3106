import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../config/config.ts'
import { hasRoomForWork } from '../domain/admin/disk-room.ts'
import { createFailureLog } from '../flow/log-digest.ts'
import type { Duty } from '../flow/ports.ts'
import type { Relay } from '../flow/relay-part.ts'
import { createDutyCycle, createWakeupTimer, startRepeating, startWorker } from '../runtime/schedule.ts'
import type { Closing } from './closing.ts'
import type { Membership } from './replica-name.ts'

export type Duties = ReturnType<typeof createDuties>

interface Parts extends Pick<Relay, 'log' | 'clock'> {
  readonly disk: { readonly state: () => { readonly freeBytes: number } }
  readonly replicas: Pick<Membership, 'holds'>
  readonly closing: Closing
}

/** How long a duty rests after a failed pass, in milliseconds. */
const REST_MS = 1000

/** Starts what works in the background, and stops it at the end. */
export function createDuties(
  { limits }: { readonly limits: Pick<Config['limits'], 'freeSpaceBytesMin'> },
  { log, clock, disk, replicas, closing }: Parts,
) {
  const stopping = new AbortController()
  const hasRoom = () => hasRoomForWork({ freeBytes: disk.state().freeBytes, freeBytesMin: limits.freeSpaceBytesMin })
  const started: { readonly duty: Duty; readonly worker: ReturnType<typeof startWorker> }[] = []
  return {
    /** Runs work that delays pushes, one piece at a time, with rests in between. */
    inTurn: createDutyCycle(clock.monotonic, (ms) => pause(ms, undefined, { signal: stopping.signal }).catch(() => undefined)),
    /** Aborted when the relay stops. Long requests then end early. */
    stopping: stopping.signal,
    abortPending: () => stopping.abort(),
    add(duty: Duty) {
      const { role, everyMs, needsRoom = false, pass, failure } = duty
      const isOurs = () => role === null || replicas.holds(role)
      const failures = createFailureLog({ log, clock })
      const worker = startWorker(
        async () => (isOurs() && (!needsRoom || hasRoom()) ? await pass() : 'idle'),
        (error) => {
          // Once another replica has the role, a failure is no error.
          if (isOurs()) failures.add('error', { err: error }, failure)
          else log.debug({ err: error }, failure)
          timer.set(clock.now() + REST_MS)
        },
      )
      const timer = createWakeupTimer(worker.wake, clock.now)
      const looking = everyMs === undefined ? null : startRepeating(async () => worker.wake(), everyMs)
      started.push({ duty, worker })
      closing.add(async () => {
        looking?.stop()
        await worker.stop()
        // Cancel the timer after the last pass, which may have set it.
        timer.cancel()
      })
    },
    /** Call it after an order that may be work for a duty, and when roles may have changed. */
    wake() {
      for (const { duty, worker } of started) if (duty.afterOrders === true) worker.wake()
    },
    /** Resolves when no work of this role is under way. Call it when the replica gives up the role. */
    async rests(role: string) {
      await Promise.all(started.filter(({ duty }) => duty.role === role).map(({ worker }) => worker.rests()))
    },
  }
}
