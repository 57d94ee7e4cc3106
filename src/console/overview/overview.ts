import type { OtherClocks } from '../../core/domain/admin/clock-record.ts'
import { type DiskRoom, isDiskFull, isDiskLow } from '../../core/domain/admin/disk-room.ts'
import type { StoreCounts } from '../../core/domain/admin/parcel-list.ts'
import type { Replica } from '../../core/domain/admin/replica.ts'
import {
  type Counts,
  seriesOf,
  spanStart,
  sumOf,
  type Tally,
  type TallyKind,
  type TallySpan,
  totalOf,
} from '../../core/domain/admin/tally.ts'
import { conditionOf } from '../../core/domain/delivery/endpoint-state.ts'
import type { OperatorEvent, ToldEvent } from '../../core/domain/delivery/operator-event.ts'
import { type CarrierState, carrierStanding } from '../../core/domain/polling/carrier-answer.ts'
import type { PushChannelView } from '../../core/domain/polling/poll.ts'
import type { Readiness } from '../../core/flow/admin/readiness.ts'
import type { Carrier } from '../../core/flow/ports.ts'
import type { Part, Reads, Relay, Writes } from '../../core/flow/relay-part.ts'
import type { Unstored } from '../events/unstored.ts'
import {
  type ConcernFacts,
  concernsOf,
  concernsOfAll,
  type FindConcerns,
  type KeepLook,
  POLL_LATE_MS,
  type WorkingBacklog,
} from '../problems/concern.ts'
import type { ConcernTable, DescribedConcern } from '../problems/concern-kinds.ts'
import { DISK_SUBJECTS } from '../problems/trouble.ts'
import { type Glance, isInTrouble, pastSilenceOf, pushStanding, type Situation, type WebhookView } from '../problems/verdict.ts'
import type { RefusedPushes } from '../refused/refused-pushes.rules.ts'

/** Counts for each hour or day, the oldest first. The last hour or day is not over yet. */
export interface TrafficSeries {
  /** The beginning of each hour or day. */
  readonly fromMs: readonly number[]
  readonly pushes: readonly Counts[]
  readonly missed: readonly Counts[]
  readonly polls: readonly Counts[]
  readonly attempts: readonly Counts[]
}

export interface Traffic {
  readonly hours: TrafficSeries
  readonly days: TrafficSeries
  /** Today's calls to the carrier, by spender. */
  readonly calls: Counts
  /** The lowest number of free bytes on the store's disk in each hour, as the count `free`. */
  readonly disk: readonly Tally[]
}

const DRAWN: Readonly<Record<TallySpan, number>> = { hour: 24, day: 30 }

type TrafficPorts = Part<'clock', 'now'> & Reads<'listTallies'>

/** Reads the traffic of the last 24 hours and 30 days: some 250 short rows. */
export function createReadTraffic(ports: TrafficPorts): () => Promise<Traffic> {
  const read = createReadSeries(ports)
  const traffic = async (span: TallySpan): Promise<TrafficSeries> => {
    const [pushes, missed, polls, attempts] = await Promise.all([
      read('pushes', span),
      read('missed', span),
      read('polls', span),
      read('attempts', span),
    ])
    const counts = (series: typeof pushes) => series.map((one) => one.counts)
    return {
      fromMs: pushes.map(({ fromMs }) => fromMs),
      pushes: counts(pushes),
      missed: counts(missed),
      polls: counts(polls),
      attempts: counts(attempts),
    }
  }
  return async () => {
    const [hours, days, calls, disk] = await Promise.all([traffic('hour'), traffic('day'), read('calls', 'day'), read('disk', 'hour')])
    return { hours, days, calls: calls.at(-1)?.counts ?? {}, disk }
  }
}

/** Reads the shown hours or days of one kind, with zeros where there are no counts. */
function createReadSeries({ reads, clock }: TrafficPorts) {
  return async (kind: TallyKind, span: TallySpan) => {
    const toMs = clock.now() + 1
    const last = spanStart(span, clock.now())
    const stored = await reads.listTallies({ span, kind, fromMs: seriesOf([], { span, last, length: DRAWN[span] })[0]?.fromMs ?? 0, toMs })
    return seriesOf(stored, { span, last, length: DRAWN[span] })
  }
}

export interface OverviewPorts
  extends Part<'clock', 'now'>,
    Reads<'countQuarantined' | 'countHeld' | 'listEndpoints' | 'countBacklogs' | 'lastFailures' | 'listOperatorEvents' | 'listTallies'>,
    Writes<'pushChannel' | 'lookAtClock'> {
  readonly counts: () => Promise<StoreCounts>
  readonly otherClocks: () => OtherClocks
  readonly carrier: Pick<Carrier, 'state'>
  readonly readiness: () => Promise<Readiness>
  readonly disk: () => DiskRoom | null
  readonly unstored: Pick<Unstored, 'sinceMs'>
  readonly readTraffic: () => Promise<Traffic>
  readonly listReplicas: () => Promise<readonly Replica[]>
  readonly backups: () => { readonly failing: Glance['backupFailing'] }
  readonly refused: () => Promise<readonly RefusedPushes[]>
  /** Finds what else is wrong, given what was seen. */
  readonly concerns: (seen: Seen) => Promise<readonly DescribedConcern[]>
  readonly webhook: () => Promise<WebhookView>
  readonly stalled: () => Promise<Situation['stalled']>
}

/** Recent operator events and counts of traffic. */
export interface Past {
  readonly happened: readonly ToldEvent[]
  readonly traffic: Traffic
}

/** Collects what operators see of the relay at a glance. */
export type Overview = ReturnType<typeof createOverview>

/** How many endpoints in trouble have their backlogs counted, and how many events are shown. */
export const SHOWN = { backlogs: 20, events: 10 }

export function createOverview({ reads, write, carrier, readiness, disk, readTraffic, listReplicas, ...ports }: OverviewPorts) {
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

  const lossySince = async (pushes: PushChannelView): Promise<number | null> => {
    if (pushStanding(pushes) !== 'lossy') return null
    const beganMs = await lastMs('pushes_lossy')
    return beganMs === null || beganMs < ((await lastMs('pushes_trusted')) ?? beganMs) ? null : beganMs
  }

  const unserved = async ({ breaker: { sinceMs } }: CarrierState): Promise<Situation['unserved']> => {
    if (sinceMs === undefined) return null
    const fromMs = spanStart('hour', sinceMs)
    const tallies = await reads.listTallies({ kind: 'served', span: 'hour', fromMs, toMs: ports.clock.now() + 1 })
    return { fromMs, count: totalOf(sumOf(tallies), ['unavailable']) }
  }

  return {
    /** Reads only what shows whether something is wrong. */
    glance: async (): Promise<Glance> => ({ ...(await look()), counts: { quarantined: await reads.countQuarantined() } }),
    async read(): Promise<Situation & Past> {
      const seen = await look()
      const troubled = [...(seen.operator === null ? [] : [seen.operator]), ...seen.endpoints].filter(isInTrouble).slice(0, SHOWN.backlogs)
      const troubledIds = troubled.map(({ endpoint }) => endpoint.id)
      const counts = await ports.counts()
      const traffic = await readTraffic()
      return {
        ...seen,
        counts,
        diskSinceMs: await diskSince(seen.disk),
        unserved: await unserved(seen.carrier),
        lossySinceMs: await lossySince(seen.pushes),
        held: counts.quarantined === 0 ? [] : await reads.countHeld('quarantined'),
        backlogs: await reads.countBacklogs(troubledIds),
        failures: await reads.lastFailures(troubledIds),
        webhook: await ports.webhook(),
        stalled: await ports.stalled(),
        traffic,
        missedByHour: traffic.hours.fromMs.map((fromMs, at) => ({ fromMs, count: totalOf(traffic.hours.missed[at] ?? {}) })),
        happened: await reads.listOperatorEvents({ event: null, fromMs: null, toMs: null, before: null, limit: SHOWN.events }),
      }
    },
  }
}

type Seen = Omit<Glance, 'counts' | 'concerns'>

export interface ConcernsPorts
  extends Pick<Quick, 'certificates' | 'failedReload' | 'undelivered' | 'wal' | 'carrierAheadMs'>,
    Pick<Relay, 'clock'>,
    Reads<'listParcels' | 'listOldestWaiting'> {
  /** Whether nothing is polled by schedule at a time. */
  readonly isQuiet: (nowMs: number) => boolean
  /** What wings find. */
  readonly offered: readonly FindConcerns[]
  readonly kinds: Pick<ConcernTable, 'describe'>
  readonly keep: KeepLook
  /** The id of this replica. */
  readonly replicaId: () => number
}

type Quick = { readonly [Name in keyof ConcernFacts]: () => ConcernFacts[Name] }

/** Files and long tables are looked at again after this long, however many pages are open. */
const KEPT_MS = 10_000

export function createKeepLook({ monotonic }: Pick<Relay['clock'], 'monotonic'>): KeepLook {
  return <Args extends readonly unknown[], Result>(look: (...args: Args) => Promise<Result>) => {
    let known: { readonly found: Promise<Result>; readonly atMs: number } | null = null
    return async (...args: Args) => {
      if (known === null || monotonic() - known.atMs >= KEPT_MS) known = { found: look(...args), atMs: monotonic() }
      const { found } = known
      return await found.catch((error: unknown) => {
        if (known?.found === found) known = null
        throw error
      })
    }
  }
}

/** Creates the function that finds what else is wrong, given what was seen already. */
export function createConcerns({
  reads,
  offered,
  kinds,
  keep,
  clock,
  ...ports
}: ConcernsPorts): (seen: Seen) => Promise<readonly DescribedConcern[]> {
  const startedAtMs = clock.now()
  let lastPausedAtMs = Number.NEGATIVE_INFINITY

  const lookAt = keep(async (seen: Seen) => {
    const oldest = await reads.listOldestWaiting()
    const working = seen.endpoints.filter((state) => !['failing', 'disabled'].includes(conditionOf(state)))
    const backlogs = working.map(
      ({ endpoint }): WorkingBacklog => ({ endpoint: endpoint.name, oldestAtMs: oldest.get(endpoint.id) ?? null }),
    )
    return { backlogs, pollDueAtMs: await mostOverdue() }
  })

  async function mostOverdue(): Promise<number | null> {
    const { parcels } = await reads.listParcels({ prefix: null, status: null, stopped: null, after: null, limit: 1 })
    return parcels[0]?.state.nextPollAtMs ?? null
  }

  return async (seen) => {
    const { refused, pushes, replicas, clockDoubt } = seen
    const nowMs = clock.now()
    const { budget } = seen.carrier
    const arePollsMade =
      seen.notReady.length === 0 && !['refused', 'failing'].includes(carrierStanding(seen.carrier).kind) && !ports.isQuiet(nowMs)
    if (!arePollsMade) lastPausedAtMs = nowMs
    const facts = await lookAt(seen)
    const before = { nowMs, startedAtMs, isClockDoubted: clockDoubt !== null, isBackupFailing: seen.backupFailing !== null }
    const mine = concernsOf(
      {
        ...facts,
        startedAtMs,
        refused,
        lastPushAtMs: pushes.lastPushAtMs,
        replicas,
        certificates: ports.certificates(),
        failedReload: ports.failedReload(),
        undelivered: ports.undelivered(),
        wal: ports.wal(),
        carrierAheadMs: clockDoubt === null ? ports.carrierAheadMs() : null,
        pollDueAtMs: facts.pollDueAtMs,
        callsSpent: budget.callsToday < budget.callsPerDay ? null : budget.callsPerDay,
        pollsMadeFromMs: arePollsMade ? Math.max(startedAtMs, lastPausedAtMs, quietUntilMs(nowMs)) : nowMs,
        offered: (await Promise.all(offered.map((find) => find(before)))).flat(),
      },
      nowMs,
    )
    return kinds.describe(concernsOfAll(mine, replicas, ports.replicaId()))
  }

  /** Quiet hours of which nobody saw the end are over for less than this long if they were not an hour ago. */
  function quietUntilMs(nowMs: number): number {
    return ports.isQuiet(nowMs - POLL_LATE_MS) ? nowMs : Number.NEGATIVE_INFINITY
  }
}
