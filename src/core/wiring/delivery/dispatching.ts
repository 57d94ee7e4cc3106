import { createDispatcher, type DispatcherOptions, type DispatcherPorts } from '../../flow/delivery/dispatching/dispatcher.ts'
import { createWakeupTimer, startWorker } from '../../runtime/worker.ts'

/** Assembles the dispatcher and the worker that runs its rounds. */
export function openDispatching(ports: Omit<DispatcherPorts, 'random' | 'wake'>, options: DispatcherOptions) {
  const { log, clock } = ports
  const wakeAt = (atMs: number | null) => (atMs === null ? run() : wakeup.set(atMs))
  const dispatcher = createDispatcher({ ...ports, random: Math.random, wake: wakeAt }, options)
  const worker = startWorker(dispatcher.pass, (error) =>
    log.error({ err: error }, 'a dispatch round failed; the dispatcher continues when it is next woken'),
  )
  let isStarted = false
  const run = () => {
    if (isStarted) worker.wake()
  }
  const wakeup = createWakeupTimer(run, clock.now)
  return {
    start() {
      isStarted = true
    },
    /** Call when there is something new to deliver. */
    wake() {
      dispatcher.look()
      run()
    },
    /** Call when the order of a parcel's waiting deliveries may have changed. */
    reorder() {
      dispatcher.review()
      run()
    },
    /** Does the same as `reorder`, and resolves when the next round has ended. */
    async reordered() {
      const reviewed = dispatcher.reviewed()
      run()
      await reviewed
    },
    /** Call when this replica has changed endpoints. */
    changed() {
      dispatcher.reviewEndpoints()
      run()
    },
    /** See `Dispatcher`. */
    async drained(endpointId: string) {
      const drained = dispatcher.drained(endpointId)
      run()
      await drained
    },
    lapsed: dispatcher.lapsed,
    unwritten: dispatcher.unwritten,
    /** Stops sending: begins no new attempts, ends the running ones by `interrupt`, and stores their results. */
    async stop(interrupt: () => Promise<void>) {
      await worker.stop()
      // Stop the dispatcher before the interrupt. Otherwise each attempt that ends would begin the next one.
      const settled = dispatcher.stop()
      await interrupt()
      await settled
      // Cancel the timer after the last round, which may have set it.
      wakeup.cancel()
    },
  }
}

/** Wakes the dispatcher. Parts that are created before the dispatcher can use this. */
interface DispatchSignal {
  /** Call when there is something to deliver. */
  wake(): void
  /** Connects the dispatcher. Earlier calls of `wake` are not needed, because the dispatcher looks at everything when it starts. */
  connect(dispatcher: Pick<DispatchSignal, 'wake'>): void
}

export function createDispatchSignal(): DispatchSignal {
  let connected: Pick<DispatchSignal, 'wake'> | undefined
  return {
    wake: () => connected?.wake(),
    connect(dispatcher) {
      connected = dispatcher
    },
  }
}
