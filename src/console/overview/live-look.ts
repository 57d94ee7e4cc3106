import { conditionOf } from '../../core/domain/delivery/endpoint-state.ts'
import { isObject, member, readJson } from '../../core/domain/json-body.ts'
import { carrierStanding } from '../../core/domain/polling/carrier-answer.ts'
import { pushStanding } from '../../core/domain/polling/push-standing.ts'
import type { Reads, Relay } from '../../core/flow/relay.ts'
import { type Glance, problemsOf } from '../problems/verdict.ts'
import type { Overview } from './overview.ts'

/** Which part of an open page is kept up to date. `other`: only the problems in the side bar, which every page shows. */
export type Shown =
  | { readonly kind: 'overview' | 'jobs' | 'other' }
  | { readonly kind: 'endpoint'; readonly id: string }
  | { readonly kind: 'parcel'; readonly identifier: string }

export interface LiveLookPorts extends Pick<Relay, 'clock'>, Reads<'readFeed' | 'listJobs'> {
  readonly overview: Pick<Overview, 'glance'>
  /** Reads the newest events of the feed. */
  readonly tail: { read(request: typeof PAGE & { readonly after: number }): Promise<TailPage> }
}

interface TailPage {
  readonly events: readonly { readonly json: string }[]
  readonly next: number
  readonly ended: boolean
}

export interface LiveLook {
  /**
   * Returns a text for each page. A text changes whenever its page would show something else. The texts are made from the store, so changes
   * by other replicas change them too. Throws if the store cannot be read.
   */
  stamps(shown: readonly Shown[]): Promise<readonly string[]>
}

/** One look reads at most this many pages of the feed. If there are more, all shown parcels count as changed. */
const PAGES_MAX = 20
const PAGE = { limit: 500, charsMax: 256 * 1024, inStep: true }
/** A look reads only this many of the newest jobs. The running jobs are among them. */
const JOBS_MAX = 20
/** Times such as `lastPushAtMs` change all the time. They are rounded to this, so a page may show them some seconds late. */
const COARSE_MS = 30_000

/** Each look makes a few small reads, however many pages are open. */
export function createLiveLook({ overview, tail, reads, clock }: LiveLookPorts): LiveLook {
  /** The sequence up to which the feed was read; null: no page shows a parcel. */
  let readTo: number | null = null
  /** How often each shown parcel has changed since it was first shown. */
  const changes = new Map<string, number>()

  async function countChanges(identifiers: ReadonlySet<string>): Promise<void> {
    for (const identifier of changes.keys()) if (!identifiers.has(identifier)) changes.delete(identifier)
    for (const identifier of identifiers) if (!changes.has(identifier)) changes.set(identifier, 0)
    if (identifiers.size === 0) {
      readTo = null
      return
    }
    const changed = readTo === null ? new Set<string>() : await changedSince(readTo)
    if (readTo === null || changed === null) readTo = await endOfFeed()
    for (const identifier of identifiers)
      if (changed === null || changed.has(identifier)) changes.set(identifier, (changes.get(identifier) ?? 0) + 1)
  }

  /** Returns the identifiers in the events after a sequence; null: there are too many events for one look. */
  async function changedSince(sequence: number): Promise<ReadonlySet<string> | null> {
    const named = new Set<string>()
    let after = sequence
    for (let page = 0; page < PAGES_MAX; page++) {
      const { events, next, ended } = await tail.read({ ...PAGE, after })
      for (const { json } of events) for (const identifier of identifiersIn(json)) named.add(identifier)
      after = next
      if (!ended) continue
      readTo = after
      return named
    }
    return null
  }

  async function endOfFeed(): Promise<number> {
    return (await reads.readFeed({ after: Number.MAX_SAFE_INTEGER, limit: 1 })).last
  }

  return {
    async stamps(shown) {
      const glance = await overview.glance()
      await countChanges(new Set(shown.flatMap((one) => (one.kind === 'parcel' ? [one.identifier] : []))))
      const general = generalStamp(glance)
      const jobs = shown.some(({ kind }) => kind === 'jobs') ? await jobsStamp() : ''
      return shown.map((one) => `${general} ${one.kind === 'jobs' ? jobs : ownStamp(one, glance)}`)
    },
  }

  async function jobsStamp(): Promise<string> {
    const jobs = await reads.listJobs({ before: null, limit: JOBS_MAX })
    return JSON.stringify(jobs.map(({ jobId, state, done }) => [jobId, state, done]))
  }

  function ownStamp(shown: Shown, { pushes, refused, endpoints }: Glance): string {
    if (shown.kind === 'overview') {
      const causes = refused.map(({ cause }) => cause)
      return JSON.stringify([coarse(pushes.lastPushAtMs), pushes.missedSincePush, causes, coarse(clock.now())])
    }
    if (shown.kind === 'parcel') return String(changes.get(shown.identifier) ?? 0)
    if (shown.kind !== 'endpoint') return ''
    const state = endpoints.find(({ endpoint }) => endpoint.id === shown.id)
    if (state === undefined) return 'removed'
    const { keys, health, ...rest } = state
    return JSON.stringify([rest, { ...health, lastSuccessAtMs: coarse(health.lastSuccessAtMs) }, keys?.next?.fromMs, keys?.currentSinceMs])
  }
}

function coarse(atMs: number | null): number | null {
  return atMs === null ? null : Math.floor(atMs / COARSE_MS)
}

function generalStamp(glance: Glance): string {
  const { counts, carrier, pushes, endpoints } = glance
  const problems = problemsOf(glance).map((problem) => [problem.kind, 'state' in problem ? problem.state.endpoint.id : null])
  return JSON.stringify([
    problems,
    counts.quarantined,
    [carrierStanding(carrier).kind, pushes.health, pushStanding(pushes)],
    endpoints.map((state) => [state.endpoint.id, state.endpoint.name, conditionOf(state)]),
  ])
}

function identifiersIn(json: string): readonly string[] {
  const reading = readJson(Buffer.from(json))
  const event = reading.ok ? reading.value : null
  return ['parcel', 'joined'].flatMap((name) => {
    const part = isObject(event) ? member(event, name) : null
    const identifiers = isObject(part) ? member(part, 'identifiers') : null
    return Array.isArray(identifiers) ? identifiers.filter((one) => typeof one === 'string') : []
  })
}
