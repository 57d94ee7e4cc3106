import type { RemoteCarrier } from '../carrier/call/carrier-client.ts'
import type { RestoreRecord } from '../domain/admin/restore.ts'
import type { ManageBackups } from '../flow/admin/backups/manage-backups.ts'
import type { TombstoneKeyKeeper } from '../flow/admin/erasure/tombstone-key.ts'
import { createKnownCounts } from '../flow/admin/overview/known-counts.ts'
import { createReadiness } from '../flow/admin/overview/readiness.ts'
import type { Tallies } from '../flow/admin/overview/tallies.ts'
import { readEndpointGauges } from '../flow/delivery/endpoint-gauges.ts'
import type { EndpointKeys } from '../flow/delivery/endpoint-keys.ts'
import { countSealed } from '../flow/delivery/reseal-endpoints.ts'
import type { Vault } from '../flow/delivery/vault.ts'
import { createFailureLog } from '../flow/failure-log.ts'
import { createExpiredPushWarning } from '../flow/ingest/expired-pushes.ts'
import { createPushLog } from '../flow/ingest/push-log.ts'
import type { RefusedPushesKeeper } from '../flow/ingest/refused-pushes.ts'
import type { LogDigest } from '../flow/log-digest.ts'
import type { PushHealthMonitor } from '../flow/polling/push-health-monitor.ts'
import type { Log } from '../flow/ports.ts'
import { ENDPOINT_LABELS } from '../ops/attempt-counter.ts'
import { createMetrics } from '../ops/metrics.ts'
import { VERSION } from '../package-files.ts'
import type { Certificates } from './certificates.ts'
import type { ReceiverNews } from './hosting/receive-side.ts'
import { otherClocksOf } from './other-clocks.ts'
import type { openRecording } from './recording.ts'
import type { Storage } from './storage/opened-storage.ts'
import { LOG_BYTES_WARN } from './storage/storage.ts'

export interface ReportingPorts {
  readonly storage: Storage
  readonly recording: ReturnType<typeof openRecording>
  readonly carrier: RemoteCarrier
  readonly pushes: PushHealthMonitor
  readonly endpointKeys: Pick<EndpointKeys, 'lost'>
  readonly certificates: Pick<Certificates, 'shown' | 'clients'>
  readonly vault: Pick<Vault, 'isCurrent'>
  readonly tombstoneKey: Pick<TombstoneKeyKeeper, 'sealed'>
  readonly backups: Pick<ManageBackups, 'state' | 'failures' | 'skipped'>
  readonly restores: readonly RestoreRecord[]
  readonly tallies: Tallies
  readonly refused: RefusedPushesKeeper
  /** Whether nothing is polled by schedule at a time. */
  readonly isQuiet: (nowMs: number) => boolean
  /** How many keys of the carrier are configured now. */
  readonly keys: () => number
  /** Pushes are refused while fewer bytes are free. */
  readonly freeBytesMin: number
  readonly digest: LogDigest
  readonly log: Log
}

/** Assembles what operators see: metrics, readiness, and log lines about pushes and commits. */
export function openReporting(ports: ReportingPorts) {
  const { storage, recording, carrier, pushes, endpointKeys, certificates, vault, backups, restores, tallies, digest, log } = ports
  const { clock, reads, write, receiver, disk, replicas } = storage
  const { recorder, commitSignal } = recording
  const failures = createFailureLog({ log, clock })
  const counts = createKnownCounts({ reads, clock })
  const metrics = createMetrics(VERSION, {
    keys: ports.keys,
    gauges: async () => ({
      ...(await counts().catch(() => null)),
      commitQueue: recorder.pending() + (await receiver.verbs.waiting()),
      ...carrierGauges(carrier),
      pollingQuiet: ports.isQuiet(clock.now()) ? 1 : 0,
      pushesHealthy: pushes.health() === 'healthy' ? 1 : 0,
      pushesSilent: pushes.health() === 'silent' ? 1 : 0,
      pushesRefused: readiness.refusesPushes() ? 1 : 0,
      ...disk.state(),
      freeBytesMin: ports.freeBytesMin,
      logBytesWarn: LOG_BYTES_WARN,
    }),
    clockDoubt: () => write.lookAtClock(otherClocksOf(storage, carrier)),
    endpoints: () => readEndpointGauges({ reads, clock }, ENDPOINT_LABELS),
    certificates: certificates.shown,
    clientCertificates: () => certificates.clients().slice(0, ENDPOINT_LABELS.max),
    secrets: () => countSealed({ vault, reads, tombstoneKey: ports.tombstoneKey.sealed }),
    restores: () => restores,
    backups: () => ({ state: backups.state(), failures: backups.failures(), skipped: backups.skipped(), nowMs: clock.now() }),
    retention: () => reads.retentionState(),
    replicas: async () => ({ all: await replicas.list(), id: replicas.id() }),
  })
  const meter = tallies.over(metrics.meter)
  const readiness = createReadiness({
    reads,
    carrier,
    disk,
    pushHealth: pushes.health,
    misdirected: receiver.verbs.misdirected,
    lostKeys: endpointKeys.lost,
    caughtUp: receiver.verbs.waiting,
  })
  reportCommits(commitSignal, { readiness, meter, failures })
  const pushLog = createPushLog(digest)
  const warnOfExpired = createExpiredPushWarning({ log, monotonic: clock.monotonic })
  return {
    /** Counts what the store contains, such as parcels and quarantined pushes. */
    counts,
    metrics,
    meter,
    readiness,
    /** Lists the pushes that were refused in the last day. */
    refused: ports.refused.list,
    /** The disk is full: counts what is refused by itself, from the first push; see `RefusedPushesKeeper`. */
    async diskFull(afterMs: number): Promise<number> {
      await receiver.verbs.waiting()
      return ports.refused.troubleBegins(afterMs)
    },
    /** Saves the counts of refused pushes, to the last one. */
    async saveRefused(): Promise<void> {
      await receiver.verbs.waiting()
      await ports.refused.save()
    },
    /** Call it when the disk has room again. */
    async pushesTaken(): Promise<void> {
      await receiver.verbs.waiting()
      pushLog.storedAgain()
    },
    /** Applies a report of the receiver's thread. */
    received({ pushes: counts, commits: committed, refusals, refusedSenders: senders, reasons, comebacks }: ReceiverNews): void {
      for (const { outcome, keyIndex, count, atMs } of counts) {
        meter.pushReceived(outcome, keyIndex, count)
        ports.refused.note(outcome, count, atMs)
        pushLog.add(outcome, count, { senders, reasons })
        warnOfExpired(outcome, count)
      }
      ports.refused.noteComebacks(comebacks)
      for (const refusal of refusals) {
        meter.refusalExplained(refusal.causes.map(({ code }) => code))
        write.keepRefusal(refusal).catch((err: unknown) => log.debug({ err }, 'cannot store why a push was refused'))
      }
      for (const stats of committed) {
        if (stats instanceof Error) commitSignal.failed('pushes', stats)
        else commitSignal.committed('pushes', stats)
      }
    },
  }
}

function carrierGauges(carrier: Pick<RemoteCarrier, 'state'>) {
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

function reportCommits(commitSignal: ReportingPorts['recording']['commitSignal'], { readiness, meter, failures }: CommitReports): void {
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
