import { createDispatcher, type DispatcherOptions, type DispatcherPorts } from '../flow/delivery/dispatcher.ts'
import { createWakeupTimer } from '../runtime/wakeup-timer.ts'
import { startWorker } from '../runtime/worker.ts'

/** The dispatcher, and what drives it. */
export interface Dispatching {
  /** Until then nothing leaves. */
  start(): void
  /** There is something new to deliver. */
  wake(): void
  /** What waits may have another place in the order of its parcel. */
  reorder(): void
  /** Begins nothing more; `interrupt` ends the posts under way, whose results are then written down. */
  stop(interrupt: () => Promise<void>): Promise<void>
}

export function openDispatching(ports: Omit<DispatcherPorts, 'random' | 'wake'>, options: DispatcherOptions): Dispatching {
  const { log, clock } = ports
  const wakeAt = (atMs: number | null) => (atMs === null ? run() : alarm.set(atMs))
  const dispatcher = createDispatcher({ ...ports, random: Math.random, wake: wakeAt }, options)
  const worker = startWorker(dispatcher.pass, (error) =>
    log.error({ err: error }, 'a pass of the relay failed; it rests until it is woken'),
  )
  let isStarted = false
  const run = () => {
    if (isStarted) worker.wake()
  }
  const alarm = createWakeupTimer(run, clock.now)
  return {
    start() {
      isStarted = true
    },
    wake() {
      dispatcher.look()
      run()
    },
    reorder() {
      dispatcher.review()
      run()
    },
    async stop(interrupt) {
      alarm.cancel()
      await worker.stop()
      // Before what is under way is interrupted: the end of one attempt is otherwise the beginning of the next.
      const settled = dispatcher.stop()
      await interrupt()
      await settled
    },
  }
}
