import { randomUUID } from 'node:crypto'
import type { Config } from '../../core/config/config.ts'
import { createReadiness } from '../../core/flow/admin/readiness.ts'
import { readEndpointGauges } from '../../core/flow/delivery/endpoint-queries.ts'
import { createExpiredPushWarning, createFailureLog, createPushLog } from '../../core/flow/log-digest.ts'
import { ENDPOINT_LABELS } from '../../core/ops/counters.ts'
import { createMetrics } from '../../core/ops/metrics.ts'
import { LOG_BYTES_WARN } from '../../core/runtime/disk-watch.ts'
import { startRepeating } from '../../core/runtime/schedule.ts'
import type { Capabilities } from '../../core/wiring/capabilities.ts'
import { otherClocksOf } from '../../core/wiring/carrier.ts'
import type { ReceiverNews } from '../../core/wiring/hosting/receive-side.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { REPLICA } from '../../core/wiring/replica-name.ts'
import { VERSION } from '../../package-files.ts'
import { createTroubleWatch, USABLE_AT } from '../events/trouble-watch.ts'
import { createUnstored, type Kept, type Unstored } from '../events/unstored.ts'
import { openUnstoredFile } from '../events/unstored-file.ts'
import { type ConcernsPorts, createConcerns, createKeepLook } from '../overview/overview.ts'
import { createKnownCounts } from '../parcels/parcel-queries.ts'
import { type FindConcerns, type KeepLook, localConcerns } from '../problems/concern.ts'
import { countSealed } from '../secrets/manage-secrets.ts'
import { createTallies, type Tallies } from '../tallies/tallies.ts'

type MeasuredParts = Pick<Relay, 'recorder' | 'receiver' | 'carrier' | 'disk' | 'clock' | 'pushes' | 'isQuiet' | 'reads'>
type MetricsParts = Pick<Relay, 'write' | 'shared' | 'certificates' | 'vault' | 'tombstoneKey' | 'replicas'>
type NewsParts = Pick<Relay, 'receiver' | 'write' | 'commitSignal' | 'tallies' | 'refused' | 'endpointKeys' | 'digest' | 'log'>

export type Reporting = ReturnType<typeof openReporting>

/** Assembles what operators see: metrics, readiness, and log lines about pushes and commits. */
export function openReporting(
  config: Config,
  parts: MeasuredParts & MetricsParts & NewsParts & Pick<Relay, 'settings'>,
  offered: Metered['offered'],
) {
  const { carrier, disk, pushes, receiver, reads, endpointKeys, commitSignal, settings, tallies } = parts
  const counts = createKnownCounts(parts)
  const readiness = createReadiness({
    reads,
    carrier,
    disk,
    pushHealth: pushes.health,
    misdirected: receiver.verbs.misdirected,
    lostKeys: endpointKeys.lost,
    caughtUp: receiver.verbs.waiting,
  })
  const gauges = gaugesOf(config, parts, { counts, readiness })
  const metrics = createMetrics(VERSION, { keys: () => settings().webhook.sharedKeys.length, gauges, offered, ...tablesOf(parts) })
  const meter = tallies.over(metrics.meter)
  reportCommits(commitSignal, { readiness, meter, failures: createFailureLog(parts) })
  return {
    /** Counts what the store contains, such as parcels and quarantined pushes. */
    counts,
    metrics,
    meter,
    readiness,
    ...newsOf(parts, parts.clock, meter),
  }
}

type Metered = Parameters<typeof createMetrics>[1]

function gaugesOf(
  { limits }: Config,
  { recorder, receiver, carrier, disk, clock, pushes, isQuiet }: MeasuredParts,
  { counts, readiness }: { readonly counts: ReturnType<typeof createKnownCounts>; readonly readiness: ReturnType<typeof createReadiness> },
): Metered['gauges'] {
  return async () => ({
    ...(await counts().catch(() => null)),
    commitQueue: recorder.pending() + (await receiver.verbs.waiting()),
    ...carrierGauges(carrier),
    pollingQuiet: isQuiet(clock.now()) ? 1 : 0,
    pushesHealthy: pushes.health() === 'healthy' ? 1 : 0,
    pushesSilent: pushes.health() === 'silent' ? 1 : 0,
    pushesRefused: readiness.refusesPushes() ? 1 : 0,
    ...disk.state(),
    freeBytesMin: limits.freeSpaceBytesMin,
    logBytesWarn: LOG_BYTES_WARN,
  })
}

/** Reads the metrics that are not counted here: what lies in the store, and what other parts know. */
function tablesOf(parts: MetricsParts & Pick<Relay, 'reads' | 'clock' | 'carrier'>): Omit<Metered, 'keys' | 'gauges' | 'offered'> {
  const { write, certificates, replicas } = parts
  return {
    clockDoubt: () => write.lookAtClock(otherClocksOf(parts)),
    endpoints: () => readEndpointGauges(parts, ENDPOINT_LABELS),
    certificates: certificates.shown,
    clientCertificates: () => certificates.clients().slice(0, ENDPOINT_LABELS.max),
    secrets: () => countSealed(parts),
    replicas: async () => ({ all: await replicas.list(), id: replicas.id() }),
  }
}

/** Handles the reports of the receiver's thread. */
function newsOf(
  { receiver, write, commitSignal, refused, digest, log }: NewsParts,
  { monotonic }: Relay['clock'],
  meter: ReturnType<Tallies['over']>,
) {
  const pushLog = createPushLog(digest)
  const warnOfExpired = createExpiredPushWarning({ log, monotonic })
  return {
    /** The disk is full: counts what is refused by itself, from the first push; see `RefusedPushesKeeper`. */
    async diskFull(afterMs: number): Promise<number> {
      await receiver.verbs.waiting()
      return refused.troubleBegins(afterMs)
    },
    /** Saves the counts of refused pushes, to the last one. */
    async saveRefused(): Promise<void> {
      await receiver.verbs.waiting()
      await refused.save()
    },
    /** Call it when the disk has room again. */
    async pushesTaken(): Promise<void> {
      await receiver.verbs.waiting()
      pushLog.storedAgain()
    },
    /** Applies a report of the receiver's thread. */
    received({ pushes, commits, refusals, refusedSenders: senders, reasons, comebacks }: ReceiverNews): void {
      for (const { outcome, keyIndex, count, atMs } of pushes) {
        meter.pushReceived(outcome, keyIndex, count)
        refused.note(outcome, count, atMs)
        pushLog.add(outcome, count, { senders, reasons })
        warnOfExpired(outcome, count)
      }
      refused.noteComebacks(comebacks)
      for (const refusal of refusals) {
        meter.refusalExplained(refusal.causes.map(({ code }) => code))
        write.keepRefusal(refusal).catch((err: unknown) => log.debug({ err }, 'cannot store why a push was refused'))
      }
      for (const stats of commits) {
        if (stats instanceof Error) commitSignal.failed('pushes', stats)
        else commitSignal.committed('pushes', stats)
      }
    },
  }
}

function carrierGauges(carrier: Pick<Relay['carrier'], 'state'>) {
  const { budget, credentials, breaker } = carrier.state()
  return {
    carrierQueue: budget.waiting,
    carrierCallsToday: budget.callsToday,
    carrierCallsPerDay: budget.callsPerDay,
    carrierCredentialsRefused: credentials === 'refused' ? 1 : 0,
    carrierResting: breaker.state === 'closed' ? 0 : 1,
  }
}

interface CommitReports {
  readonly readiness: ReturnType<typeof createReadiness>
  readonly meter: ReturnType<Tallies['over']>
  readonly failures: ReturnType<typeof createFailureLog>
}

function reportCommits(commitSignal: Relay['commitSignal'], { readiness, meter, failures }: CommitReports): void {
  commitSignal.subscribe({
    committed(source, stats) {
      readiness.storeWorks(source)
      meter.batchCommitted(stats.size, stats.durationMs)
      for (const [result, count] of stats.merged) meter.merged(result, count)
    },
    failed(source, error) {
      readiness.storeFails(source, error)
      failures.add('error', { err: error }, 'a commit failed; its senders are asked to try again')
    },
  })
}

/** How often the counts are saved, in milliseconds. If the relay is killed, it loses the counts since then. */
const SAVE_MS = 10_000

type UnstoredParts = Pick<Relay, 'write' | 'path' | 'shared' | 'clock' | 'wakeDispatcher' | 'closing' | 'log'>

/**
 * Opens what keeps writes that the store could not take, and writes those that the last run has left. Call it before the parts that are added to it,
 * so that it closes after them.
 */
export async function openUnstored({ write, path, shared, clock, wakeDispatcher: wake, closing, log }: UnstoredParts): Promise<Unstored> {
  const file = shared === null ? openUnstoredFile<Kept>(path) : null
  const unstored = createUnstored({ write, file, clock, log, wake })
  await unstored.retry()
  closing.add(() => unstored.retry())
  return unstored
}

type TallyParts = Pick<Relay, 'write' | 'disk' | 'clock' | 'unstored' | 'settings' | 'closing' | 'log'>

/** Begins to count events by the hour. */
export function openTallies({ write, disk, clock, unstored, settings, closing, log }: TallyParts): Tallies {
  const tallies = createTallies({
    write,
    process: randomUUID(),
    clock,
    freeBytes: () => disk.state().freeBytes,
    zone: () => settings().zone,
  })
  unstored.add(() => tallies.unflushed().map((flush) => ({ kind: 'tallies', flush })))
  const flushing = startRepeating(
    () => tallies.flush().catch((err: unknown) => log.debug({ err }, 'cannot write the counts now; the relay tries again')),
    SAVE_MS,
  )
  closing.add(() => flushing.stop())
  closing.add(() => tallies.flush().catch((err: unknown) => log.debug({ err }, 'the last counts could not be written')))
  return tallies
}

/** How often the relay checks whether a trouble has begun or ended, in milliseconds. Without a change the check costs nothing. */
const LOOK_MS = 1000
/** How often the relay looks for ended jobs and quarantined pushes, in milliseconds, to notify operators of them. */
const TELL_MS = 5000

type TellingParts = Pick<Relay, 'write' | 'clock' | 'disk' | 'replicas' | 'carrier' | 'unstored' | 'closing' | 'log'>
type OwnParts = Pick<Relay, 'certificates' | 'wakeDispatcher' | 'shared' | 'operator'> & { readonly reporting: Reporting }

/** Begins to notify operators of events. */
export function startTelling({ limits }: Pick<Config, 'limits'>, parts: TellingParts & OwnParts): void {
  const { write, clock, replicas, unstored, wakeDispatcher, reporting, closing, log } = parts
  const watch = createTroubleWatch(
    {
      ...parts,
      otherClocks: () => otherClocksOf(parts),
      carrier: parts.carrier.state,
      freeBytes: () => parts.disk.state().freeBytes,
      certificates: parts.certificates.shown,
      refused: { troubleBegins: reporting.diskFull, save: reporting.saveRefused },
      isPoller: () => replicas.holds('poller'),
      wake: wakeDispatcher,
    },
    { freeBytesMin: limits.freeSpaceBytesMin, replica: REPLICA.name },
  )
  const tell = async () => {
    if (replicas.holds('janitor') && (await write.tellOperators({ nowMs: clock.now() })) > 0) wakeDispatcher()
  }
  const often = (work: () => Promise<void>, everyMs: number) =>
    startRepeating(
      () => work().catch((err: unknown) => log.debug({ err }, 'notifying operators or deleting old events failed; the relay tries again')),
      everyMs,
    )
  const proveLife = proofOfLife(limits.freeSpaceBytesMin, parts)
  const look = async () => {
    // The end of a full disk tells when the relay did not run, so that is written first.
    await proveLife()
    await watch()
    await unstored.retry(parts.operator.post)
  }
  for (const repeated of [often(look, LOOK_MS), often(tell, TELL_MS)]) closing.add(() => repeated.stop())
}

/** While the disk is full, saves every ten seconds that the relay runs, and at its stop until when, so that the next run knows how long it did not. */
function proofOfLife(freeBytesMin: number, { disk, clock, unstored, closing }: TellingParts): () => Promise<void> {
  let atMs: number | null = null
  let isUp = false
  unstored.add(() => (atMs === null ? [] : [{ kind: 'alive', atMs }]))
  closing.add(() => {
    if (atMs !== null) atMs = clock.now()
  })
  return async () => {
    if (!isUp) await unstored.isUp()
    isUp = true
    const nowMs = clock.now()
    if (disk.state().freeBytes >= USABLE_AT * freeBytesMin) atMs = null
    else if (atMs === null || Math.abs(nowMs - atMs) >= SAVE_MS) atMs = nowMs
  }
}

type ConcernParts = Pick<Relay, 'reads' | 'clock' | 'disk' | 'replicas' | 'carrier' | 'certificates' | 'isQuiet'>
/** What wings judge. */
export type JudgedParts = Pick<Relay, 'atRest' | 'endpointKeys' | 'backups' | 'settings' | 'path' | 'shared' | 'reads' | 'clock'>

/** Makes what finds the concerns of a folder of a wing. */
export type ProblemsOf = (relay: JudgedParts, keep: KeepLook) => FindConcerns

/** Assembles what finds the concerns (`console/problems/concern.ts`). */
export function openConcerns(
  parts: ConcernParts & JudgedParts & Pick<Capabilities, 'delivery'>,
  failedReload: ConcernsPorts['failedReload'],
  { offered, kinds }: Pick<ConcernsPorts, 'kinds'> & { readonly offered: readonly ProblemsOf[] },
) {
  const keep = createKeepLook(parts.clock)
  const { reads, clock, disk, replicas, carrier, certificates, isQuiet } = parts
  const certificatesNow = () => [
    ...certificates.shown().map(({ listener, untilMs }) => ({ shownBy: `${listener} listener`, endpoint: null, untilMs })),
    ...certificates.clients().map(({ endpoint, untilMs }) => ({ shownBy: `relay at ${endpoint}`, endpoint, untilMs })),
  ]
  replicas.tell(() =>
    localConcerns({ certificates: certificatesNow(), failedReload: failedReload(), carrierAheadMs: carrier.aheadMs() }, clock.now()),
  )
  return createConcerns({
    reads,
    clock,
    carrierAheadMs: carrier.aheadMs,
    failedReload,
    undelivered: parts.delivery.unwritten,
    replicaId: replicas.id,
    isQuiet,
    wal: () => ({ bytes: disk.state().logBytes, bytesWarn: LOG_BYTES_WARN }),
    certificates: certificatesNow,
    keep,
    kinds,
    offered: offered.map((problemsOf) => problemsOf(parts, keep)),
  })
}
