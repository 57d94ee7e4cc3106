import { randomBytes } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { hash, verify } from '@node-rs/argon2'
import { type CarrierOptions, createCarrier } from './carrier/carrier-client.ts'
import type { Config } from './config/config.ts'
import { readCertificates } from './config/named-file.ts'
import { askableNow } from './domain/polling/breaker.ts'
import { isQuiet } from './domain/polling/quiet-hours.ts'
import { createAuthenticate, type VerifiedToken } from './flow/admin/authenticate.ts'
import { createImportWatches } from './flow/admin/import-watches.ts'
import { createManageInbox } from './flow/admin/manage-inbox.ts'
import { createParcelCommands } from './flow/admin/parcel-commands.ts'
import { createParcelQueries } from './flow/admin/parcel-queries.ts'
import { createReadiness } from './flow/admin/readiness.ts'
import { readEndpointGauges } from './flow/delivery/endpoint-gauges.ts'
import { createEndpointKeys } from './flow/delivery/endpoint-keys.ts'
import { createFeedTail } from './flow/delivery/feed-tail.ts'
import { createFollowFeed } from './flow/delivery/follow-feed.ts'
import { createCredentialsTeller } from './flow/delivery/operator-events.tx.ts'
import { type CommitStats, commitStatsOf } from './flow/history/commit-stats.ts'
import type { Pause } from './flow/history/fetch-on-miss.ts'
import { createServe } from './flow/history/serve.ts'
import { createExpiredPushWarning } from './flow/ingest/expired-pushes.ts'
import { createPushLog } from './flow/ingest/push-log.ts'
import { createLogDigest } from './flow/log-digest.ts'
import { createClockRollback } from './flow/polling/clock-rollback.ts'
import { createPoller } from './flow/polling/poller.ts'
import { createPollsUnderWay } from './flow/polling/polls-under-way.ts'
import { openPushHealthMonitor } from './flow/polling/push-health-monitor.ts'
import { createRefresh } from './flow/polling/refresh.ts'
import { createUpstream } from './flow/polling/upstream.ts'
import type { Log } from './flow/ports.ts'
import { createAddressOf } from './http/server/client-address.ts'
import { createAdmitLogin, createCountFailure } from './http/server/failures.ts'
import { createInternalListener } from './http/server/internal.ts'
import { createPerMinute, createTries } from './http/server/per-minute.ts'
import { createTokens } from './http/server/tokens.ts'
import { createMetrics, ENDPOINT_LABELS_MAX } from './ops/metrics.ts'
import { createVault } from './ops/vault.ts'
import { VERSION } from './package-files.ts'
import { createAnswerCache } from './runtime/answer-cache.ts'
import { createDiskWatch, startDiskChecks } from './runtime/disk-watch.ts'
import { createFeedSignal } from './runtime/feed-signal.ts'
import { boundsOf, createGroupCommit } from './runtime/group-commit.ts'
import { createMemory } from './runtime/memory.ts'
import { refuseInTrouble, refuseWhenLost } from './runtime/refuse-writes.ts'
import { startSchedule } from './runtime/schedule.ts'
import { createSpread } from './runtime/spread.ts'
import { systemClock } from './runtime/system-clock.ts'
import { startWorker } from './runtime/worker.ts'
import { createReadStore } from './store/read-store.ts'
import { openSqliteReader } from './store/sqlite/sqlite.ts'
import { createDiskLook } from './store/sqlite/sqlite-disk.ts'
import { followLinks } from './store/sqlite/sqlite-identity.ts'
import { permissionWarnings } from './store/sqlite/sqlite-permissions.ts'
import { atRestKeys } from './wiring/at-rest-keys.ts'
import { listen } from './wiring/listen.ts'
import type { ReceiverNews } from './wiring/receive-side.ts'
import { openRelaying } from './wiring/relaying.ts'
import { startThreads, type Threads } from './wiring/threads.ts'

export interface RunningRelay {
  /** Addresses as bound, for example `http://127.0.0.1:8080`. */
  readonly publicUrl: string
  readonly internalUrl: string
  /** Resolves if the relay cannot go on: one of its threads is gone. */
  readonly died: Promise<unknown>
  /**
   * Takes what a config that was read again says of apps, the webhook's keys, endpoints and the operator; the rest needs a restart.
   * Rejects, with nothing changed, if it cannot.
   */
  reload(config: Config): Promise<void>
  /** Takes nothing new, finishes what is in flight within the shutdown timeout, and closes the store. */
  stop(): Promise<void>
}

/** How often the room on the disk is looked at: soon enough to stop before a disk is full, and to go on within seconds after. */
const DISK_LOOK_MS = 500
const DIGEST_LOOK_MS = 5000
/** How often it is seen to that the schedule goes with the clock, whenever the poller wakes. */
const CLOCK_LOOK_MS = 5000
/** How often it is written down how things stand with the carrier, besides every few calls. */
const KEEP_MEMORY_MS = 30_000
const LOG_BYTES_WARN = 256 * 1024 * 1024
/** How many followers of the feed are written to in one turn of the event loop: a millisecond's worth. */
const FOLLOWERS_AT_ONCE = 25
const REMEMBERED = { tokens: 10_000, notFound: 100_000, pauses: 100_000 }

/** The composition root: the one place that knows every room. Resolves when both addresses answer. `threads`: if they are under way already. */
export async function startRelay(config: Config, log: Log, threads?: Threads): Promise<RunningRelay> {
  if (config.store.engine !== 'sqlite') throw new Error('this version keeps its data in SQLite only')
  const clock = systemClock
  const { changes, ...starting } = threads ?? startThreads(config, config.store.path)
  // In this order: without a writer there is nothing to receive for, and it is the one that says why.
  const writer = await starting.writer
  const receiver = await starting.receiver
  const storePath = followLinks(config.store.path)
  for (const warning of permissionWarnings(storePath)) log.warn({}, warning)
  const reads = createReadStore(openSqliteReader(storePath))
  const disk = createDiskWatch(
    { measure: createDiskLook(storePath), sign: receiver.diskSign, log },
    { freeBytesMin: config.limits.freeSpaceBytesMin, logBytesWarn: LOG_BYTES_WARN },
  )
  await disk.check()
  const write = refuseWhenLost(writer.verbs, disk)
  const memory = await write.carrierMemory().catch((err: unknown) => {
    log.warn({ err }, 'what the last run did at the carrier cannot be read')
    return null
  })
  const pushes = await openPushHealthMonitor({ write, log, wake: () => relaying.wake() })
  let settings = config
  const carrier = openCarrier(config, log, {
    memory,
    remember: (left) => write.rememberCarrier(left),
    password: () => settings.upstream.password.reveal(),
  })
  const metrics = createMetrics(
    VERSION,
    async () => ({
      ...(await reads.counts(clock.now())),
      commitQueue: recorder.waiting() + (await receiver.verbs.waiting()),
      carrierQueue: carrier.state().budget.waiting,
      carrierCallsToday: carrier.state().budget.callsToday,
      carrierResting: carrier.state().breaker.state === 'closed' ? 0 : 1,
      pushesHealthy: pushes.health() === 'healthy' ? 1 : 0,
      pushesSilent: pushes.health() === 'silent' ? 1 : 0,
      ...disk.state(),
    }),
    () => readEndpointGauges({ reads, clock }, ENDPOINT_LABELS_MAX),
  )
  const { meter } = metrics
  const { keys, keyFile } = atRestKeys(config, storePath)
  const endpointKeys = createEndpointKeys({ vault: createVault(keys), reads, log }, { keyFile })
  const readiness = createReadiness({
    reads,
    carrier,
    disk,
    pushHealth: pushes.health,
    lostKeys: endpointKeys.lost,
    caughtUp: receiver.verbs.waiting,
  })

  const digest = createLogDigest({ log, clock })
  const logPushes = createPushLog(digest)
  const feedSignal = createFeedSignal()
  const storeFailed = (kind: 'pushes' | 'polls', error: unknown) => {
    readiness.storeFails(kind, error)
    log.error({ err: error }, 'a batch could not be committed; its senders are told to send again')
  }
  const committed = (kind: 'pushes' | 'polls', news: CommitStats) => {
    feedSignal.tell()
    readiness.storeWorks(kind)
    meter.batchCommitted(news.size, news.durationMs)
    for (const [result, count] of news.merged) meter.merged(result, count)
    if (news.joined) relaying.review()
    else if (news.queued) relaying.wake()
  }
  const warnOfExpired = createExpiredPushWarning({ log, monotonic: clock.monotonic })
  const received = ({ pushes: counts, commits }: ReceiverNews) => {
    for (const { outcome, keyIndex, count } of counts) {
      meter.pushReceived(outcome, keyIndex, count)
      logPushes(outcome, count)
      warnOfExpired(outcome, count)
    }
    for (const news of commits) {
      if (news instanceof Error) storeFailed('pushes', news)
      else committed('pushes', news)
    }
  }
  const commit = createGroupCommit(
    {
      recorder: writer.recorder,
      onCommitted: (report) => committed('polls', commitStatsOf(report)),
      monotonic: clock.monotonic,
      hear: writer.hear,
      onFailed: (error) => storeFailed('polls', error),
    },
    boundsOf(config.limits.batch),
  )
  const recorder = refuseInTrouble(commit, disk)
  const asking = { carrier, recorder, reads, write, meter, clock, log }
  const admitUnknown = createPerMinute(config.limits.unknownPerMinute)
  const cache = createAnswerCache({ bytesMax: config.limits.cacheBytes, changes })
  const serve = createServe(
    {
      ...asking,
      cache,
      notFound: createMemory<number>({ entriesMax: REMEMBERED.notFound }),
      pauses: createMemory<Pause>({ entriesMax: REMEMBERED.pauses }),
      admitUnknown,
    },
    { languages: config.upstream.languages, ...config.serve },
  )
  const refresh = createRefresh(asking, { languages: someLanguages(config) })
  const authenticate = createAuthenticate(
    {
      tokens: createTokens({ key: await firstWrite(storePath, write.tokenKey()), clock }),
      verifyPassword: verify,
      verified: createMemory<VerifiedToken>({ entriesMax: REMEMBERED.tokens }),
      clock,
    },
    {
      apps: appsOf(config),
      tokenLifetimeMs: config.token.lifetimeMs,
      dummyHash: await hash('nobody', { memoryCost: 19_456, timeCost: 2, parallelism: 1 }),
    },
  )

  const polling = createPollsUnderWay()
  const { quietHours } = config.poll
  const upstream = createUpstream({ carrier, write, version: VERSION })
  const clockShifted = () => {
    relaying.wake()
    // What is written down of waits was reckoned by the clock as it was.
    void carrier.keep()
  }
  const followClock = createClockRollback({ write, clock, log, onShifted: clockShifted }, memory?.atMs ?? null)
  let keptAtMs = clock.monotonic()
  const keepMemory = async () => {
    if (clock.monotonic() - keptAtMs < KEEP_MEMORY_MS) return
    keptAtMs = clock.monotonic()
    await carrier.keep()
  }
  const lookAtClock = async () => {
    if (disk.trouble() === 'lost') return
    await followClock()
      .then(keepMemory)
      .catch((err: unknown) => log.debug({ err }, 'the schedule could not follow the clock; it is tried again'))
  }
  const askable = () => askableNow(carrier.state().breaker, config.upstream.concurrency)
  const pollDue = createPoller(
    { ...asking, asking: polling, refresh, askable, isQuiet: (nowMs) => quietHours !== null && isQuiet(nowMs, quietHours) },
    { concurrency: config.upstream.concurrency },
  )
  // What a poll brings could not be stored: the carrier's budget is kept for when it can.
  const pollWithRoom = async () => {
    if (disk.trouble() === 'lost') return 'idle'
    await followClock()
    const result = disk.trouble() === null ? await pollDue() : 'idle'
    await tellCredentials()
    await pushes.follow()
    return result
  }
  const poller = startWorker(pollWithRoom, (error) => log.error({ err: error }, 'a pass of the poller failed; it rests until it is woken'))

  await endpointKeys.check()
  const ownPorts: number[] = []
  const relaying = await firstWrite(
    storePath,
    openRelaying(config, {
      write,
      reads,
      vault: endpointKeys.vault,
      makeKey: () => randomBytes(32).toString('base64'),
      meter,
      clock,
      log,
      hear: writer.hear,
      breathe: () => nextTurn(),
      ownPorts: () => ownPorts,
    }),
  )
  receiver.follow(received, log)
  const publicAddress = await receiver.verbs.listen()
  const addressOf = createAddressOf(config.listen.internal.trustProxy)
  const internalServer = await listen(
    'internal',
    { ...config.listen.internal, limits: config.limits },
    createInternalListener({
      log,
      authenticate,
      serve,
      followFeed: createFollowFeed({
        tail: createFeedTail({ reads, turn: () => nextTurn() }),
        signal: feedSignal,
        clock,
        spread: createSpread(FOLLOWERS_AT_ONCE),
      }),
      feedFollowersMax: config.limits.feedFollowers,
      manageEndpoints: relaying.manageEndpoints,
      manageDeliveries: relaying.manageDeliveries,
      manageInbox: createManageInbox({ write, reads, clock, onCommitted: (report) => committed('pushes', commitStatsOf(report)) }),
      manageJobs: relaying.manageJobs,
      manageParcels: createParcelCommands({ write, refresh, asking: polling, clock, invalidate: cache.invalidate }),
      lookAtParcels: createParcelQueries({ reads }),
      upstream,
      watchList: createImportWatches({ write, clock, invalidate: cache.invalidate }),
      admitLogin: createAdmitLogin(createTries(config.limits.failuresPerMinute), addressOf),
      countFailure: createCountFailure(createPerMinute(config.limits.failuresPerMinute), addressOf),
      readiness: readiness.read,
      metrics: metrics.render,
    }),
  )
  const tellCredentials = createCredentialsTeller({
    write,
    credentials: () => carrier.state().credentials,
    now: clock.now,
    wake: relaying.wake,
  })
  ownPorts.push(publicAddress.port, internalServer.port)
  relaying.start()
  const diskLooks = startDiskChecks(disk, DISK_LOOK_MS)
  const digestLooks = startDiskChecks({ check: async () => digest.flush() }, DIGEST_LOOK_MS)
  const clockLooks = startDiskChecks({ check: lookAtClock }, CLOCK_LOOK_MS)
  const schedule = startSchedule(config.poll.cron, () => poller.wake(), clock.now)
  poller.wake()

  return {
    publicUrl: publicAddress.url,
    internalUrl: internalServer.url,
    died: Promise.race([writer.died, receiver.died]),
    async reload(next) {
      await relaying.reload(next)
      settings = next
      authenticate.replaceApps(appsOf(next))
      await receiver.verbs.replaceKeys(next.webhook.sharedKeys.map((key) => key.reveal()))
    },
    async stop() {
      await schedule.stop()
      diskLooks.stop()
      digestLooks.stop()
      clockLooks.stop()
      feedSignal.close()
      relaying.hurry()
      await Promise.all([receiver.verbs.stop(config.shutdownTimeoutMs), internalServer.stop(config.shutdownTimeoutMs)])
      await carrier.close()
      await poller.stop()
      await relaying.stop()
      await recorder.drained()
      await receiver.verbs.close()
      await reads.close()
      await writer.verbs.close()
      digest.end()
    },
  }
}

function appsOf(config: Config) {
  return config.apps.map((app) => ({ ...app, passwordHash: app.passwordHash.reveal() }))
}

/** What is written at the start: a store that opens may still take no writes. */
async function firstWrite<T>(storePath: string, written: Promise<T>): Promise<T> {
  return await written.catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : 'unknown cause'
    if (!reason.includes('SQLITE_')) throw cause
    throw new Error(`store: ${storePath} could be opened but takes no writes (${reason}). Nothing was deleted. Look at the disk.`, {
      cause,
    })
  })
}

function openCarrier(config: Config, log: Log, kept: Pick<CarrierOptions, 'memory' | 'remember' | 'password'>) {
  const { upstream } = config
  const { proxy: _proxy, ...carrierSettings } = upstream
  return createCarrier({
    ...carrierSettings,
    ...kept,
    clock: systemClock,
    log,
    ...(upstream.caFile === null ? {} : { ca: readCertificates('upstream.caFile', upstream.caFile) }),
    ...(upstream.proxy === null ? {} : { proxy: upstream.proxy.reveal() }),
  })
}

function someLanguages(config: Config): readonly [string, ...string[]] {
  const [first, ...others] = config.upstream.languages
  if (first === undefined) throw new RangeError('at least one language must be configured')
  return [first, ...others]
}
