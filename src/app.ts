import type { Config } from './config/config.ts'
import type { ConcernFacts } from './domain/admin/problems/concern.ts'
import { createEndpointKeys } from './flow/delivery/endpoint-keys.ts'
import { createLogDigest } from './flow/log-digest.ts'
import { openPushHealthMonitor } from './flow/polling/push-health-monitor.ts'
import type { Log } from './flow/ports.ts'
import { createVault } from './ops/vault.ts'
import { systemClock as clock } from './runtime/system-clock.ts'
import { openAtRestKeys } from './wiring/at-rest-keys.ts'
import { openBackups } from './wiring/backups/backups.ts'
import { openCarrier } from './wiring/carrier.ts'
import { createCertificates } from './wiring/certificates.ts'
import { openRunningCheck } from './wiring/checking/running-check.ts'
import { type Closing, createClosing } from './wiring/closing.ts'
import { openConcerns } from './wiring/concerns.ts'
import { openDelivery } from './wiring/delivery/delivery.ts'
import { createDispatchSignal } from './wiring/delivery/dispatch-signal.ts'
import { beginDuties } from './wiring/duties.ts'
import { openAuthentication, openHistory } from './wiring/history.ts'
import { openInternalApi } from './wiring/internal-api.ts'
import { listen } from './wiring/listen.ts'
import { openMoves } from './wiring/moving/moves.ts'
import { otherClocksOf } from './wiring/other-clocks.ts'
import { openPolling, quietHoursOf } from './wiring/polling.ts'
import { openRecording } from './wiring/recording.ts'
import { openRefusedPushes } from './wiring/refused-pushes.ts'
import { createReload } from './wiring/reloading.ts'
import { openReporting } from './wiring/reporting.ts'
import type { RunningRelay, StartOptions } from './wiring/running-relay.ts'
import { openSecrets } from './wiring/secrets.ts'
import { openStorage } from './wiring/storage/storage.ts'
import { openTallies } from './wiring/tallies.ts'
import { startTelling } from './wiring/telling.ts'
import { startTimers } from './wiring/timers.ts'
import { openTombstoneKey } from './wiring/tombstone-key.ts'
import { openUnstored } from './wiring/unstored.ts'

/**
 * Assembles and starts the relay. Resolves when both listeners answer. If the relay takes over from a running one (`options.stopPredecessor`) and its
 * start fails, everything that it has opened is closed.
 */
export async function startRelay(config: Config, log: Log, options: StartOptions = {}): Promise<RunningRelay> {
  const closing = createClosing()
  try {
    return await assembleRelay(config, log, options, closing)
  } catch (error) {
    if (options.stopPredecessor !== undefined) await closing.closeAll().catch(() => undefined)
    throw error
  }
}

// oxlint-disable-next-line max-lines-per-function -- the order in which the parts are made is clearer in one list
async function assembleRelay(config: Config, log: Log, options: StartOptions, closing: Closing): Promise<RunningRelay> {
  let settings = config
  let stopTimeoutMs = config.shutdownTimeoutMs
  const digest = createLogDigest({ log, clock })
  closing.add(() => digest.end(), 'serving')
  const storage = await openStorage(config, log, closing, options.threads)
  const { receiver, reads, write } = storage
  const dispatch = createDispatchSignal()
  const unstored = await openUnstored(storage, dispatch.wake, closing, log)
  const tallies = openTallies(storage, unstored, closing, log)
  const refused = openRefusedPushes(storage, unstored, closing, log)
  const atRest = openAtRestKeys(config, storage.path)
  const fault = atRest.fault()
  if (fault !== null) log.error({ reason: fault }, 'the key file cannot be used: nothing can be erased, and no endpoint can be given a key')
  const vault = createVault(atRest.keys)
  const password = () => settings.upstream.password.reveal()
  const { carrier, memory } = await openCarrier(config, { storage, log, password, vault, onCall: tallies.callMade })
  const pushes = await openPushHealthMonitor({ write, log, wake: dispatch.wake })
  const recording = openRecording(config, storage, closing)
  const endpointKeys = createEndpointKeys({ vault, reads, log }, atRest)
  const certificates = createCertificates({ log })
  const tombstoneKey = await openTombstoneKey(config, { storage, vault, atRest, log })
  const backups = await openBackups(config, { storage, keyFile: atRest.keyFilePath, unstored, closing, log })
  const restores = await reads.listRestores()
  const damaged = await reads.listDamaged()
  if (damaged.length > 0)
    log.error({ count: damaged.length, rows: damaged }, 'rows of the store are damaged; the relay goes on without them')
  const reported = {
    restores,
    carrier,
    pushes,
    endpointKeys,
    certificates,
    backups: backups.manage,
    vault,
    tombstoneKey,
    tallies,
    refused,
    keys: () => settings.webhook.sharedKeys.length,
    freeBytesMin: config.limits.freeSpaceBytesMin,
    isQuiet: quietHoursOf(config),
    digest,
    log,
  }
  const reporting = openReporting({ storage, recording, ...reported })
  const { meter } = reporting
  const history = openHistory(config, { storage, recording, carrier, meter, log })
  const { authenticate, sessions, keyring } = await openAuthentication(config, storage)

  await endpointKeys.check()
  const ownPorts: number[] = []
  let publicUrl = ''
  const sending = {
    vault: endpointKeys.vault,
    meter,
    log,
    ownPorts: () => ownPorts,
    onReprocessed: recording.reprocessed,
    onRetired: recording.retired,
  }
  const delivery = await openDelivery(config, { ...storage, ...sending })
  closing.add(() => delivery.stop())
  dispatch.connect(delivery)
  const polling = openPolling(config, { storage, history, carrier, memory, pushes, wakeDispatcher: dispatch.wake, log, closing })
  const { underWay } = polling
  const { commitSignal } = recording
  const moves = openMoves(config, {
    storage,
    endpointKeys,
    keyFile: atRest.keyFile,
    settings: () => settings,
    handOver: options.handOver ?? null,
    log,
    closing,
  })
  const portal = { sessions, keyring, settings: () => settings, relayId: delivery.relayId }
  const manageSecrets = openSecrets(config, { storage, vault, atRest, keyring, tombstoneKey, closing, log })
  const checking = { storage, carrier, delivery, endpointKeys, settings: () => settings, publicUrl: () => publicUrl }
  const check = openRunningCheck({ ...checking, keyFault: atRest.fault, readiness: reporting.readiness.read, backups: backups.manage })
  const parts = { carrier, check, manageSecrets, history, authenticate, underWay, delivery, reporting, portal, log }
  let failedReload: ConcernFacts['failedReload'] = null
  const concerns = openConcerns({
    storage,
    carrier,
    certificates,
    atRest,
    endpointKeys,
    backups: backups.manage,
    settings: () => settings,
    isQuiet: quietHoursOf(config),
    failedReload: () => failedReload,
    undelivered: delivery.unwritten,
  })
  const api = openInternalApi(config, {
    ...parts,
    concerns,
    unstored,
    storage,
    commitSignal,
    moves: moves.manage,
    backups: backups.manage,
    tombstoneKey,
    restores,
    reloadConfig: options.reloadConfig ?? null,
  })
  const { removeAfterMs } = config.delivery
  beginDuties({
    ...moves,
    removeAfterMs,
    storage,
    commitSignal,
    delivery,
    polling,
    pushes,
    tellFollowers: api.feedSignal.tell,
    forgetFeed: api.forgetFeed,
    closing,
    log,
  })
  receiver.forwardNews(reporting.received, log)
  const otherEnded = options.stopPredecessor?.()
  const patienceMs = otherEnded === undefined ? 0 : config.shutdownTimeoutMs
  const publicServer = await receiver.verbs.listen(patienceMs)
  const internalServer = await listen('internal', { ...config.listen.internal, limits: config.limits, patienceMs }, api.listener)
  // What was answered while the listeners closed is counted before the counts are saved for the last time.
  closing.add(() => receiver.verbs.waiting().catch(() => undefined), 'serving')
  closing.add(() => Promise.all([receiver.verbs, internalServer].map((server) => server.stop(stopTimeoutMs))), 'serving')
  closing.add(() => {
    delivery.abortPending()
    moves.manage.abortPending()
  })
  closing.add(() => api.feedSignal.close(), 'serving')
  ownPorts.push(publicServer.port, internalServer.port)
  publicUrl = publicServer.url
  const applied = (next: Config) => {
    settings = next
  }
  const seenByReload = {
    ...storage,
    atRest,
    delivery,
    authenticate,
    sessions,
    carrier,
    certificates,
    publicServer,
    internalServer,
    backups,
    log,
    applied,
    ended: (problems: readonly string[]) => {
      failedReload = problems.length === 0 ? null : { atMs: storage.clock.now(), problems }
    },
  }
  const reloads = createReload(config, { ...seenByReload, receiver: receiver.verbs, unstored })
  delivery.start()
  startTelling(config, {
    storage,
    carrier,
    otherClocks: () => otherClocksOf(storage, carrier),
    certificates,
    refused: { troubleBegins: reporting.diskFull, save: reporting.saveRefused },
    unstored,
    postOperator: delivery.postOperator,
    wakeDispatcher: dispatch.wake,
    closing,
    log,
  })
  startTimers(config, { ...storage, digest, reporting, carrier, authenticate, sessions, polling, closing })
  backups.begin()
  polling.begin()
  await otherEnded

  return {
    publicUrl: publicServer.url,
    internalUrl: internalServer.url,
    store: storage.path,
    // Without threads, no part of the relay can end before the process does, so this promise never resolves.
    died: storage.threads?.died ?? new Promise(() => undefined),
    ...reloads,
    async endWriting() {
      await closing.closeWorking()
      await storage.endWriting()
    },
    async stop(timeoutMs = config.shutdownTimeoutMs) {
      stopTimeoutMs = timeoutMs
      await closing.closeAll()
    },
  }
}
