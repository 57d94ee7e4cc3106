import type { Config } from './config/config.ts'
import type { ConcernFacts } from './domain/admin/problems/concern.ts'
import { isQuiet as isQuietAt } from './domain/polling/poll.ts'
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
import { openDelivery } from './wiring/delivery/delivery.ts'
import { createDispatchSignal } from './wiring/delivery/dispatch-signal.ts'
import { beginDuties } from './wiring/duties.ts'
import { openAuthentication, openHistory } from './wiring/history.ts'
import { openInternalApi } from './wiring/internal-api.ts'
import { listen } from './wiring/listen.ts'
import { openMoves } from './wiring/moving/moves.ts'
import { otherClocksOf } from './wiring/other-clocks.ts'
import { openPolling } from './wiring/polling.ts'
import { openRecording } from './wiring/recording.ts'
import type { Relay } from './wiring/relay.ts'
import { createReload } from './wiring/reloading.ts'
import { openConcerns } from './wiring/reporting/concerns.ts'
import { openRefusedPushes } from './wiring/reporting/refused-pushes.ts'
import { openReporting } from './wiring/reporting/reporting.ts'
import { openTallies } from './wiring/reporting/tallies.ts'
import { startTelling } from './wiring/reporting/telling.ts'
import { openUnstored } from './wiring/reporting/unstored.ts'
import type { RunningRelay, StartOptions } from './wiring/running-relay.ts'
import { openSecrets } from './wiring/secrets.ts'
import { openStorage } from './wiring/storage/storage.ts'
import { startTimers } from './wiring/timers.ts'
import { openTombstoneKey } from './wiring/tombstone-key.ts'

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
  const dispatch = createDispatchSignal()
  const isQuiet = (nowMs: number) => config.poll.quietHours !== null && isQuietAt(nowMs, config.poll.quietHours)
  const own = { log, digest, closing, settings: () => settings, isQuiet, wakeDispatcher: dispatch.wake }
  const stored = { ...(await openStorage(config, log, closing, options.threads)), ...own }
  const { receiver, reads, write } = stored
  const unstored = await openUnstored(stored)
  const tallies = openTallies({ ...stored, unstored })
  const refused = openRefusedPushes({ ...stored, unstored })
  const atRest = openAtRestKeys(config, stored.path)
  const fault = atRest.fault()
  if (fault !== null) log.error({ reason: fault }, 'the key file cannot be used: nothing can be erased, and no endpoint can be given a key')
  const vault = createVault(atRest.keys)
  const { carrier, memory } = await openCarrier(config, { ...stored, vault, tallies })
  const pushes = await openPushHealthMonitor({ write, log, wake: dispatch.wake })
  const recording = openRecording(config, stored)
  const endpointKeys = createEndpointKeys({ vault, reads, log }, atRest)
  const certificates = createCertificates({ log })
  const tombstoneKey = await openTombstoneKey(config, { ...stored, vault, atRest })
  const backups = await openBackups(config, { ...stored, unstored }, atRest)
  const restores = await reads.listRestores()
  const damaged = await reads.listDamaged()
  if (damaged.length > 0)
    log.error({ count: damaged.length, rows: damaged }, 'rows of the store are damaged; the relay goes on without them')
  const kept = { ...stored, ...recording, unstored, tallies, refused, atRest, vault, endpointKeys, tombstoneKey, certificates, restores }
  const measured = { ...kept, carrier, pushes, backups: backups.manage }
  const reporting = openReporting(config, measured)
  const ownPorts: number[] = []
  const relay: Relay = {
    ...measured,
    ...(await openAuthentication(config, measured)),
    meter: reporting.meter,
    ownPorts: () => ownPorts,
  }
  const history = openHistory(config, relay)

  await endpointKeys.check()
  let publicUrl = ''
  const delivery = await openDelivery(config, relay)
  closing.add(() => delivery.stop())
  dispatch.connect(delivery)
  const polling = openPolling(config, relay, { ...relay, history, memory })
  const moves = openMoves(config, relay, { keyFile: atRest.keyFile, handOver: options.handOver ?? null })
  const check = openRunningCheck(relay, {
    connections: delivery.connections,
    keyFault: atRest.fault,
    readiness: reporting.readiness.read,
    publicUrl: () => publicUrl,
  })
  let failedReload: ConcernFacts['failedReload'] = null
  const api = openInternalApi(config, relay, {
    restores,
    history,
    delivery,
    reporting,
    check,
    manageSecrets: openSecrets(config, relay),
    underWay: polling.underWay,
    moves: moves.manage,
    concerns: openConcerns(relay, { failedReload: () => failedReload, undelivered: delivery.unwritten }),
    reloadConfig: options.reloadConfig ?? null,
  })
  beginDuties({
    ...relay,
    delivery,
    polling,
    removeAfterMs: config.delivery.removeAfterMs,
    awaitMove: moves.awaitMove,
    tellFollowers: api.feedSignal.tell,
    forgetFeed: api.forgetFeed,
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
  const reloads = createReload(config, relay, {
    ...relay,
    delivery,
    publicServer,
    internalServer,
    reloadBackups: backups.reload,
    applied(next) {
      settings = next
    },
    ended(problems) {
      failedReload = problems.length === 0 ? null : { atMs: relay.clock.now(), problems }
    },
  })
  delivery.start()
  startTelling(config, relay, {
    ...relay,
    otherClocks: () => otherClocksOf(relay),
    refused: { troubleBegins: reporting.diskFull, save: reporting.saveRefused },
    postOperator: delivery.postOperator,
  })
  startTimers(config, relay, { polling, pushesTaken: reporting.pushesTaken })
  backups.begin()
  polling.begin()
  await otherEnded

  return {
    publicUrl: publicServer.url,
    internalUrl: internalServer.url,
    store: relay.path,
    // Without threads, no part of the relay can end before the process does, so this promise never resolves.
    died: relay.threads?.died ?? new Promise(() => undefined),
    ...reloads,
    async endWriting() {
      await closing.closeWorking()
      await relay.endWriting()
    },
    async stop(timeoutMs = config.shutdownTimeoutMs) {
      stopTimeoutMs = timeoutMs
      await closing.closeAll()
    },
  }
}
