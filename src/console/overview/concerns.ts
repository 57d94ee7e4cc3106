import { conditionOf } from '../../core/domain/delivery/endpoint-state.ts'
import { carrierStanding } from '../../core/domain/polling/carrier-standing.ts'
import type { Reads, Relay } from '../../core/flow/relay.ts'
import { type Concern, type ConcernFacts, concernsOf, concernsOfAll, POLL_LATE_MS, type WorkingBacklog } from '../problems/concern.ts'
import type { Glance } from '../problems/verdict.ts'

export type Seen = Omit<Glance, 'counts' | 'concerns'>

/** What is costly to look at: it reads files or many rows. */
type Costly = Pick<ConcernFacts, 'keys' | 'openFiles' | 'backups' | 'storage'>

export interface ConcernsPorts
  extends Pick<Quick, 'certificates' | 'failedReload' | 'undelivered' | 'wal' | 'carrierAheadMs'>,
    Pick<Relay, 'clock'>,
    Reads<'listParcels' | 'listOldestWaiting' | 'retentionState'> {
  /** Whether nothing is polled by schedule at a time. */
  readonly isQuiet: (nowMs: number) => boolean
  readonly look: () => Promise<Costly>
  /** The id of this replica. */
  readonly replicaId: () => number
}

type Quick = { readonly [Name in keyof ConcernFacts]: () => ConcernFacts[Name] }

/** Files and long tables are looked at again after this long, however many pages are open. */
const KEPT_MS = 10_000

/** Creates the function that finds what else is wrong, given what was seen already. */
export function createConcerns({ reads, look, clock, ...ports }: ConcernsPorts): (seen: Seen) => Promise<readonly Concern[]> {
  const startedAtMs = clock.now()
  let lastPausedAtMs = Number.NEGATIVE_INFINITY
  let known: { readonly facts: ReturnType<typeof lookAt>; readonly atMs: number } | null = null

  async function lookAt(seen: Seen) {
    const oldest = await reads.listOldestWaiting()
    const working = seen.endpoints.filter((state) => !['failing', 'disabled'].includes(conditionOf(state)))
    const backlogs = working.map(
      ({ endpoint }): WorkingBacklog => ({ endpoint: endpoint.name, oldestAtMs: oldest.get(endpoint.id) ?? null }),
    )
    return { ...(await look()), backlogs, pollDueAtMs: await mostOverdue() }
  }

  async function mostOverdue(): Promise<number | null> {
    const { parcels } = await reads.listParcels({ prefix: null, status: null, stopped: null, after: null, limit: 1 })
    return parcels[0]?.state.nextPollAtMs ?? null
  }

  return async (seen) => {
    if (known === null || clock.monotonic() - known.atMs >= KEPT_MS) known = { facts: lookAt(seen), atMs: clock.monotonic() }
    const { facts: looking } = known
    const { refused, pushes, replicas, clockDoubt } = seen
    const nowMs = clock.now()
    const { budget } = seen.carrier
    const arePollsMade =
      seen.notReady.length === 0 && !['refused', 'failing'].includes(carrierStanding(seen.carrier).kind) && !ports.isQuiet(nowMs)
    if (!arePollsMade) lastPausedAtMs = nowMs
    const facts = await looking.catch((error: unknown) => {
      // Do not keep a failure: the next call looks again.
      if (known?.facts === looking) known = null
      throw error
    })
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
        backups: seen.backupFailing === null ? facts.backups : null,
        retention: clockDoubt === null ? (await reads.retentionState()).last : null,
      },
      nowMs,
    )
    return concernsOfAll(mine, replicas, ports.replicaId())
  }

  /** Quiet hours of which nobody saw the end are over for less than this long if they were not an hour ago. */
  function quietUntilMs(nowMs: number): number {
    return ports.isQuiet(nowMs - POLL_LATE_MS) ? nowMs : Number.NEGATIVE_INFINITY
  }
}
