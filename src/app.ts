import { beginDuties } from './assembly/begin-duties.ts'
import { startMover } from './assembly/hosting/threads.ts'
import { openInternalApi } from './assembly/internal-api.ts'
import { loadConcernTable, loadOperatorEvents } from './assembly/internal-listener.ts'
import { createReload } from './assembly/reloading.ts'
import type { RunningRelay, StartOptions } from './assembly/running-relay.ts'
import { openStorage } from './assembly/storage/open-storage.ts'
import { openOperator } from './console/events/operator.routes.ts'
import { createFormatOperatorEvent } from './console/events/operator-message.ts'
import type { ConcernFacts } from './console/problems/concern.ts'
import { openRefusedPushes } from './console/refused/refused-pushes.ts'
import { openConcerns, openReporting, openTallies, openUnstored, type Reporting, startTelling } from './console/reporting/reporting.ts'
import type { Config } from './core/config/config.ts'
import { isQuiet as isQuietAt } from './core/domain/polling/poll.ts'
import { createEndpointKeys } from './core/flow/delivery/endpoint-vault.ts'
import { createLogDigest } from './core/flow/log-digest.ts'
import { openPushHealthMonitor } from './core/flow/polling/poller.ts'
import type { Log } from './core/flow/ports.ts'
import { createVault } from './core/ops/vault.ts'
import { systemClock as clock } from './core/runtime/system-clock.ts'
import { openAtRestKeys } from './core/wiring/at-rest-keys.ts'
import type { Capabilities } from './core/wiring/capabilities.ts'
import { openCarrier } from './core/wiring/carrier.ts'
import { createCertificates } from './core/wiring/certificates.ts'
import { type Closing, createClosing } from './core/wiring/closing.ts'
import { createDuties } from './core/wiring/create-duties.ts'
import { createDispatchSignal, openDelivery } from './core/wiring/delivery/open-delivery.ts'
import { listen } from './core/wiring/listen.ts'
import { openAuthentication, openHistory } from './core/wiring/open-history.ts'
import { openRecording } from './core/wiring/open-recording.ts'
import { openPolling } from './core/wiring/polling.ts'
import type { Relay } from './core/wiring/relay.ts'
import { startTimers } from './core/wiring/timers.ts'
import { openReports } from './insight/report/report.ts'
import { SERVER_STORES } from './server/postgres/server-stores.ts'
import { openBackups } from './upkeep/backups/open-backups.ts'
import { openRunningCheck } from './upkeep/check/running-check.ts'
import { openTombstoneKey } from './upkeep/erasure/tombstone-key.ts'
import { openMoves } from './upkeep/moving/open-moves.ts'
import { listRestores } from './upkeep/restore/restores.rows.ts'
import { WINGS } from './wings.ts'

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
  const { carrier, memory } = await openCarrier(config, { ...stored, vault, onCall: tallies.callMade, onPolled: tallies.polled })
  const pushes = await openPushHealthMonitor({ write, log, wake: dispatch.wake })
  const recording = openRecording(config, stored)
  const endpointKeys = createEndpointKeys({ vault, reads, log }, atRest)
  const certificates = createCertificates({ log })
  const tombstoneKey = await openTombstoneKey(config, { ...stored, vault, atRest })
  const backups = await openBackups(config, { ...stored, unstored }, atRest)
  const restores = await listRestores(reads.session)
  const damaged = await reads.listDamaged()
  if (damaged.length > 0)
    log.error({ count: damaged.length, rows: damaged }, 'rows of the store are damaged; the relay goes on without them')
  const kept = { ...stored, ...recording, unstored, tallies, refused, atRest, vault, endpointKeys, tombstoneKey, certificates, restores }
  const measured = { ...kept, carrier, pushes, backups: backups.manage }
  const metrics = await Promise.all(WINGS.flatMap(({ metrics: load }) => (load === undefined ? [] : [load()])))
  const problems = await Promise.all(WINGS.flatMap(({ problems: load }) => (load === undefined ? [] : [load()])))
  const reporting = openReporting(
    config,
    measured,
    metrics.map((register) => (registry) => register(registry, measured)),
  )
  const ownPorts: number[] = []
  const answering = {
    ...measured,
    ...(await openAuthentication(config, measured)),
    meter: reporting.meter,
    duties: createDuties(config, measured),
    ownPorts: () => ownPorts,
    reporting,
  }
  const history = openHistory(config, answering)

  await endpointKeys.check()
  let publicUrl = ''
  const formatOperatorEvent = createFormatOperatorEvent(await loadOperatorEvents())
  const delivery = await openDelivery(config, { ...answering, formatOperatorEvent })
  closing.add(() => delivery.stop())
  dispatch.connect(delivery)
  const operator = openOperator({ ...answering, delivery })
  const polling = openPolling(config, { ...answering, history }, memory)
  const reports = openReports(answering)
  const relay: Relay & Capabilities & { readonly reporting: Reporting } = { ...answering, history, delivery, operator, polling, reports }
  const moves = openMoves(config, relay, { handOver: options.handOver ?? null, server: SERVER_STORES, startMover })
  const check = openRunningCheck(relay, () => publicUrl)
  let failedReload: ConcernFacts['failedReload'] = null
  const api = await openInternalApi(config, relay, {
    check,
    moves: moves.manage,
    concerns: openConcerns(relay, () => failedReload, { offered: problems, kinds: await loadConcernTable() }),
    reloadConfig: options.reloadConfig ?? null,
  })
  beginDuties({
    ...relay,
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
    relay.duties.abortPending()
    moves.manage.abortPending()
  })
  closing.add(() => api.feedSignal.close(), 'serving')
  ownPorts.push(publicServer.port, internalServer.port)
  publicUrl = publicServer.url
  const reloads = createReload(config, relay, {
    ...relay,
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
  for (const load of WINGS.flatMap(({ duty = [] }) => duty)) relay.duties.add((await load())(relay))
  delivery.start()
  startTelling(config, relay)
  startTimers(config, relay, reporting.pushesTaken)
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
