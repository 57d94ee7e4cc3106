import type { Config } from './config/config.ts'
import { createEndpointKeys } from './flow/delivery/endpoint-keys.ts'
import { createLogDigest } from './flow/log-digest.ts'
import { openPushHealthMonitor } from './flow/polling/push-health-monitor.ts'
import type { Log } from './flow/ports.ts'
import { createVault } from './ops/vault.ts'
import { systemClock as clock } from './runtime/system-clock.ts'
import { atRestKeys } from './wiring/at-rest-keys.ts'
import { openCarrier } from './wiring/carrier.ts'
import { createClosing } from './wiring/closing.ts'
import { openDelivery } from './wiring/delivery.ts'
import { createDispatchSignal } from './wiring/dispatch-signal.ts'
import { beginDuties } from './wiring/duties.ts'
import { appsOf, openAuthentication, openHistory } from './wiring/history.ts'
import { openInternalApi } from './wiring/internal-api.ts'
import { listen } from './wiring/listen.ts'
import { openPolling } from './wiring/polling.ts'
import { openRecording } from './wiring/recording.ts'
import { openReporting } from './wiring/reporting.ts'
import { openStorage } from './wiring/storage.ts'
import type { Threads } from './wiring/threads.ts'
import { startTimers } from './wiring/timers.ts'

export interface RunningRelay {
  /** Addresses as bound, for example `http://127.0.0.1:8080`. */
  readonly publicUrl: string
  readonly internalUrl: string
  /** Resolves with the reason if the relay cannot go on: a thread has ended, or its lease on the database is lost. */
  readonly died: Promise<unknown>
  /**
   * Applies the apps, webhook keys, carrier password, endpoints, delivery and operator of a reloaded config; the rest needs a restart. Rejects,
   * with nothing changed, if it cannot.
   */
  reload(config: Config): Promise<void>
  /** Accepts nothing new, finishes what is in flight within the shutdown timeout, and closes the store. */
  stop(): Promise<void>
}

/** Assembles and starts the relay. Resolves when both listeners answer. `threads`: threads that are already starting. */
export async function startRelay(config: Config, log: Log, threads?: Threads): Promise<RunningRelay> {
  let settings = config
  const closing = createClosing()
  const digest = createLogDigest({ log, clock })
  closing.add(() => digest.end())
  const storage = await openStorage(config, log, closing, threads)
  const { receiver, reads, write } = storage
  const { died: writerDied, drainReplies } = storage.writer
  const dispatch = createDispatchSignal()
  const { keys, keyFile } = atRestKeys(config, storage.path)
  const vault = createVault(keys)
  const password = () => settings.upstream.password.reveal()
  const { carrier, memory } = await openCarrier(config, { write, clock: storage.clock, log, password, shared: storage.shared, vault })
  const pushes = await openPushHealthMonitor({ write, log, wake: dispatch.wake })
  const recording = openRecording(config, storage, closing)
  const endpointKeys = createEndpointKeys({ vault, reads, log }, { keyFile })
  const reporting = openReporting({ storage, recording, carrier, pushes, endpointKeys, digest, log })
  const { meter } = reporting.metrics
  const history = openHistory(config, { storage, recording, carrier, meter, log })
  const authenticate = await openAuthentication(config, storage)

  await endpointKeys.check()
  const ownPorts: number[] = []
  const delivery = await openDelivery(config, { ...storage, vault: endpointKeys.vault, meter, log, drainReplies, ownPorts: () => ownPorts })
  closing.add(() => delivery.stop())
  dispatch.follow(delivery)
  const polling = openPolling(config, { storage, history, carrier, memory, pushes, wakeDispatcher: dispatch.wake, log, closing })
  const { underWay } = polling
  const { commitSignal } = recording
  const api = openInternalApi(config, { storage, carrier, commitSignal, history, authenticate, underWay, delivery, reporting, log })
  beginDuties({ storage, commitSignal, delivery, polling, pushes, tellFollowers: api.feedSignal.tell, closing, log })
  receiver.follow(reporting.received, log)
  const publicServer = await receiver.verbs.listen()
  const internalServer = await listen('internal', { ...config.listen.internal, limits: config.limits }, api.listener)
  closing.add(() => Promise.all([receiver.verbs, internalServer].map((server) => server.stop(config.shutdownTimeoutMs))))
  closing.add(() => delivery.hurry())
  closing.add(() => api.feedSignal.close())
  ownPorts.push(publicServer.port, internalServer.port)
  delivery.start()
  startTimers(config, { ...storage, digest, polling, closing })
  polling.poller.wake()

  return {
    publicUrl: publicServer.url,
    internalUrl: internalServer.url,
    died: Promise.race([writerDied, receiver.died]),
    async reload(next) {
      await delivery.reload(next)
      settings = next
      authenticate.replaceApps(appsOf(next))
      await receiver.verbs.replaceKeys(next.webhook.sharedKeys.map((key) => key.reveal()))
    },
    stop: closing.closeAll,
  }
}
