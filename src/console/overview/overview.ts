import type { OtherClocks } from '../../core/domain/admin/clock-record.ts'
import { type DiskRoom, isDiskFull, isDiskLow } from '../../core/domain/admin/disk-room.ts'
import type { StoreCounts } from '../../core/domain/admin/parcel-list.ts'
import type { Replica } from '../../core/domain/admin/replica.ts'
import { totalOf } from '../../core/domain/admin/tally.ts'
import type { OperatorEvent, ToldEvent } from '../../core/domain/delivery/operator-event.ts'
import type { RefusedPushes } from '../../core/domain/ingest/refused-pushes.ts'
import type { Readiness } from '../../core/flow/admin/readiness.ts'
import type { Carrier } from '../../core/flow/ports.ts'
import type { Part, Reads, Writes } from '../../core/flow/relay.ts'
import type { BackupState } from '../../upkeep/backups/backup.rules.ts'
import type { Unstored } from '../events/unstored.ts'
import type { Concern } from '../problems/concern.ts'
import { DISK_SUBJECTS } from '../problems/trouble.ts'
import { type Glance, isInTrouble, pastSilenceOf, type Situation, type WebhookView } from '../problems/verdict.ts'
import type { Seen } from './concerns.ts'
import type { Traffic } from './traffic.ts'

export interface OverviewPorts
  extends Part<'clock', 'now'>,
    Reads<'countQuarantined' | 'countHeld' | 'listEndpoints' | 'countBacklogs' | 'lastFailures' | 'listOperatorEvents'>,
    Writes<'pushChannel' | 'lookAtClock'> {
  readonly counts: () => Promise<StoreCounts>
  readonly otherClocks: () => OtherClocks
  readonly carrier: Pick<Carrier, 'state'>
  readonly readiness: () => Promise<Readiness>
  readonly disk: () => DiskRoom | null
  readonly unstored: Pick<Unstored, 'sinceMs'>
  readonly readTraffic: () => Promise<Traffic>
  readonly listReplicas: () => Promise<readonly Replica[]>
  readonly backups: () => BackupState
  readonly refused: () => Promise<readonly RefusedPushes[]>
  /** Finds what else is wrong, given what was seen. */
  readonly concerns: (seen: Seen) => Promise<readonly Concern[]>
  readonly webhook: () => Promise<WebhookView>
}

/** Recent operator events and counts of traffic. */
export interface Past {
  readonly happened: readonly ToldEvent[]
  readonly traffic: Traffic
}

/** Collects what operators see of the relay at a glance. */
export interface Overview {
  /** Reads only what shows whether something is wrong. */
  glance(): Promise<Glance>
  read(): Promise<Situation & Past>
}

/** How many endpoints in trouble have their backlogs counted, and how many events are shown. */
export const SHOWN = { backlogs: 20, events: 10 }

export function createOverview({ reads, write, carrier, readiness, disk, readTraffic, listReplicas, ...ports }: OverviewPorts): Overview {
  /** Reads everything but the counts, because counting is expensive. */
  const look = async (): Promise<Omit<Glance, 'counts'>> => {
    const pushes = await write.pushChannel()
    const states = await reads.listEndpoints()
    const seen = {
      endpoints: states.filter(({ origin }) => origin !== 'operator'),
      operator: states.find(({ origin }) => origin === 'operator') ?? null,
      // This also waits until this process knows the outcomes of all pushes so far.
      notReady: (await readiness()).reasons,
      disk: disk(),
      carrier: carrier.state(),
      pushes,
      pastSilence: pastSilenceOf(pushes, ports.clock.now()),
      refused: await ports.refused(),
      replicas: await listReplicas(),
      clockDoubt: await write.lookAtClock(ports.otherClocks()),
      backupFailing: ports.backups().failing,
    }
    return { ...seen, concerns: await ports.concerns(seen) }
  }

  const lastMs = async (event: OperatorEvent['event']): Promise<number | null> => {
    const [last] = await reads.listOperatorEvents({ event, fromMs: null, toMs: null, before: null, limit: 1 })
    return last?.atMs ?? null
  }

  const diskSince = async (room: DiskRoom | null): Promise<number | null> => {
    if (room === null || !isDiskLow(room)) return null
    const unstoredMs = ports.unstored.sinceMs(isDiskFull(room) ? DISK_SUBJECTS.full : DISK_SUBJECTS.low)
    if (unstoredMs !== null) return unstoredMs
    const [began, ended] = isDiskFull(room) ? (['disk_full', 'disk_usable'] as const) : (['disk_low', 'disk_recovered'] as const)
    const beganMs = await lastMs(began)
    // The trouble may be seen here before its event is written. The last event is then about an earlier trouble.
    return beganMs === null || beganMs < ((await lastMs(ended)) ?? beganMs) ? null : beganMs
  }

  return {
    glance: async () => ({ ...(await look()), counts: { quarantined: await reads.countQuarantined() } }),
    async read() {
      const seen = await look()
      const troubled = [...(seen.operator === null ? [] : [seen.operator]), ...seen.endpoints].filter(isInTrouble).slice(0, SHOWN.backlogs)
      const troubledIds = troubled.map(({ endpoint }) => endpoint.id)
      const counts = await ports.counts()
      const traffic = await readTraffic()
      return {
        ...seen,
        counts,
        diskSinceMs: await diskSince(seen.disk),
        held: counts.quarantined === 0 ? [] : await reads.countHeld('quarantined'),
        backlogs: await reads.countBacklogs(troubledIds),
        failures: await reads.lastFailures(troubledIds),
        webhook: await ports.webhook(),
        traffic,
        missedByHour: traffic.hours.fromMs.map((fromMs, at) => ({ fromMs, count: totalOf(traffic.hours.missed[at] ?? {}) })),
        happened: await reads.listOperatorEvents({ event: null, fromMs: null, toMs: null, before: null, limit: SHOWN.events }),
      }
    },
  }
}
