import { type Job, UNENDED_MAX } from '../../domain/admin/job.ts'
import { givenBefore, type Retention } from '../../domain/admin/retention.ts'
import type { MissingReplay } from '../../domain/delivery/delivery-list.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import {
  boundsOf,
  type MissingSelection,
  type MissingSummary,
  missingOf,
  type Resend,
  selectMissing,
} from '../../domain/delivery/missing.ts'
import { withoutBackfill } from '../../domain/history/audience.ts'
import type { Clock } from '../ports.ts'
import type { ReadSide } from '../read-side.ts'
import type { Resends } from './resends.ts'

export interface MissingSummaryPorts {
  readonly reads: Pick<ReadSide, 'listEndpoints' | 'findParcel' | 'readBackfill' | 'findQueued' | 'ageMarks' | 'listJobs'>
  readonly resends: Pick<Resends, 'running' | 'ended'>
  readonly retention: () => Pick<Retention, 'deliveriesMs'>
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly yieldToIo: () => Promise<unknown>
}

const RECENT_MS = 24 * 3_600_000
const STEP = 50
/** The most events that a count looks at. For each of them, its whole parcel may have to be read. */
const LOOKED_AT_MAX = 1000
/** A count that looked at this many events or more took long, so its result is kept for `KEPT_MS`. */
const LARGE = 200
const KEPT_MS = 60_000

/** Counts the events that endpoints should have received and never did. */
export function createMissingSummary({ reads, resends, retention, clock, yieldToIo }: MissingSummaryPorts) {
  /** The last summary. `after` changes when another resend has ended, and the summary is then outdated. */
  let known: { readonly summary: Counted; readonly untilMs: number; readonly after: string } | null = null

  async function count(states: readonly EndpointState[], selection: MissingSelection) {
    const nowMs = clock.now()
    const sinceMs = Math.max(selection.fromMs, nowMs - retention().deliveriesMs)
    const counts = new Map<string, number>()
    let lookedAt = 0
    let after: number | null = selection.parcelId === null ? givenBefore(await reads.ageMarks(), sinceMs).sequence : 0
    while (after !== null && lookedAt < LOOKED_AT_MAX) {
      const query = { endpointId: null, parcelId: selection.parcelId, after, upTo: selection.toSequence, limit: STEP }
      const found = await reads.readBackfill(query)
      for (const state of states) {
        const events = found.events.flatMap((event) => missingOf(state, event, { ...selection, fromMs: sinceMs }) ?? [])
        const queued = await reads.findQueued({ endpointId: state.endpoint.id, events })
        counts.set(state.endpoint.id, (counts.get(state.endpoint.id) ?? 0) + events.length - queued.size)
      }
      lookedAt += STEP
      after = found.next
      if (after !== null) await yieldToIo()
    }
    const endpoints = states.map(({ endpoint: { id, name } }) => ({ endpointId: id, name, count: counts.get(id) ?? 0 }))
    const missing = endpoints.filter((one) => one.count > 0).toSorted((a, b) => b.count - a.count)
    return { summary: { sinceMs, endpoints: missing, more: after !== null }, lookedAt }
  }

  /** Lists the endpoints that may miss events. An endpoint that is catching up still gets them, so it is left out. */
  async function candidates(): Promise<readonly EndpointState[]> {
    const states = await reads.listEndpoints()
    return states.filter(
      ({ origin, queuedTo, backfilled, firstSequence }) =>
        origin !== 'operator' && queuedTo === null && withoutBackfill(backfilled, firstSequence).length > 0,
    )
  }

  function resendsOf(states: readonly EndpointState[], jobs: readonly ResendJob[]): readonly Resend[] {
    const ofJobs = jobs
      .filter(({ endedAtMs }) => endedAtMs === null)
      .map(({ jobId, task, done }) => ({ endpointId: task.to, jobId, queued: done }))
    const awaited = resends.running().map((one) => ({ ...one, jobId: null }))
    return [...ofJobs, ...awaited].flatMap((one) => {
      const state = states.find(({ endpoint }) => endpoint.id === one.endpointId)
      return state === undefined ? [] : [{ ...one, name: state.endpoint.name }]
    })
  }

  return {
    /** Counts the events of the last day. */
    async recent(): Promise<MissingSummary> {
      const states = await candidates()
      const fromMs = clock.now() - RECENT_MS
      if (states.length === 0) return { sinceMs: fromMs, endpoints: [], more: false, resends: [] }
      const jobs = (await reads.listJobs({ before: null, limit: UNENDED_MAX })).filter(isResend)
      const running = resendsOf(states, jobs)
      const after = `${resends.ended()} ${jobs.find(({ endedAtMs }) => endedAtMs !== null)?.jobId}`
      // Events that a resend queues are no longer missing. So count again while a resend runs, and after it.
      const isKnown = known !== null && clock.monotonic() < known.untilMs && known.after === after && running.length === 0
      if (known !== null && isKnown) return { ...known.summary, resends: running }
      const { summary, lookedAt } = await count(states, selectMissing({ ...boundsOf({ atMs: fromMs }, null), sequence: null }, null))
      known = lookedAt < LARGE || running.length > 0 ? null : { summary, untilMs: clock.monotonic() + KEPT_MS, after }
      return { ...summary, resends: running }
    },
    async ofParcel(identifier: string): Promise<MissingSummary['endpoints']> {
      const states = await candidates()
      const view = states.length === 0 ? null : await reads.findParcel(identifier)
      if (view === null) return []
      return (await count(states, selectMissing({ ...boundsOf(null, null), sequence: null }, view.parcelId))).summary.endpoints
    },
  }
}

type Counted = Omit<MissingSummary, 'resends'>
type ResendJob = Job & { readonly task: MissingReplay }

function isResend(job: Job): job is ResendJob {
  return job.task.kind === 'replay' && 'missing' in job.task
}
