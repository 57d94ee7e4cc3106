import type { KeyFingerprints } from '../../domain/delivery/delivery-request.ts'
import { FAILURES_COUNT_FOR_MS, type FailureGroup } from '../../domain/delivery/dispatch-round.ts'
import { limitOf, probeLooks, type ShownLimit } from '../../domain/delivery/endpoint-health.ts'
import { keysAt, type SecretOrigin } from '../../domain/delivery/endpoint-keys.ts'
import {
  conditionOf,
  type DamagedEndpoint,
  type EndpointBacklog,
  type EndpointCondition,
  type EndpointSearch,
  type EndpointState,
  NO_BACKLOG,
  searchEndpoints,
} from '../../domain/delivery/endpoint-state.ts'
import { AppError } from '../../domain/errors.ts'
import type { ReadSide } from '../../store/read-store.ts'
import type { Part, Reads } from '../relay-part.ts'
import type { SignerOf } from './dispatching/send-delivery.ts'

/** The next attempt at a failing endpoint, epoch milliseconds. */
export interface NextProbe {
  /** When a delivery that waits now is attempted; null: no delivery waits. */
  readonly atMs: number | null
  /** When an event that arrived now would be attempted, if no other delivery of its parcel waits. */
  readonly ofNewMs: number
}

export interface EndpointView extends EndpointState {
  /** Null: it is not failing, or it is disabled. */
  readonly nextProbe: NextProbe | null
  /** Null: it does not limit us, or it is disabled. */
  readonly limit: ShownLimit | null
  readonly backlog: EndpointBacklog
  /** The last failure, and how often it has occurred; null: there was none. */
  readonly lastFailure: FailureGroup | null
}

/** An endpoint with its failures, the last one first. */
export interface InspectedEndpoint extends EndpointView {
  readonly failures: readonly FailureGroup[]
  /** Null: the relay cannot open the endpoint's key, or does not know the key. */
  readonly fingerprints: KeyFingerprints | null
  /** Where the config takes the key from; null: the key is not in the config, or is written there as text. */
  readonly keyFrom: SecretOrigin | null
}

type ViewReads = Pick<ReadSide, 'countBacklogs' | 'hasProbe' | 'lastFailures'>

/** The cost grows with the number of waiting and dead deliveries; see `countBacklogs`. */
async function viewEndpoints(reads: ViewReads, states: readonly EndpointState[], nowMs: number): Promise<readonly EndpointView[]> {
  const ids = states.map(({ endpoint }) => endpoint.id)
  const [failures, backlogs] = [await reads.lastFailures(ids), await reads.countBacklogs(ids)]
  const views: EndpointView[] = []
  for (const state of states) {
    const { id } = state.endpoint
    const nextProbe = await findNextProbe(reads, state, nowMs)
    const limit = state.disabled === null ? limitOf(state.health.pace, nowMs) : null
    views.push({ ...state, nextProbe, limit, backlog: backlogs.get(id) ?? NO_BACKLOG, lastFailure: failures.get(id) ?? null })
  }
  return views
}

async function findNextProbe(
  reads: Pick<ReadSide, 'hasProbe'>,
  { endpoint, disabled, health }: EndpointState,
  nowMs: number,
): Promise<NextProbe | null> {
  const looks = disabled === null ? probeLooks(health, nowMs) : []
  const [soonest] = looks
  if (soonest === undefined) return null
  for (const { atMs, exceptParcelIds, beforeRound } of looks) {
    if (await reads.hasProbe({ endpointId: endpoint.id, exceptParcelIds, beforeRound })) return { atMs, ofNewMs: soonest.atMs }
  }
  return { atMs: null, ofNewMs: soonest.atMs }
}

export async function viewEndpoint(reads: ViewReads, state: EndpointState, nowMs: number): Promise<EndpointView> {
  const [view] = await viewEndpoints(reads, [state], nowMs)
  return view ?? { ...state, nextProbe: null, limit: null, backlog: NO_BACKLOG, lastFailure: null }
}

export async function inspectEndpoint(
  reads: ViewReads & Pick<ReadSide, 'listFailures'>,
  state: EndpointState,
  { nowMs, ...ofKey }: Pick<InspectedEndpoint, 'fingerprints' | 'keyFrom'> & { readonly nowMs: number },
): Promise<InspectedEndpoint> {
  const failures = await reads.listFailures({ endpointId: state.endpoint.id, sinceMs: nowMs - FAILURES_COUNT_FOR_MS })
  return { ...(await viewEndpoint(reads, state, nowMs)), failures, ...ofKey }
}

export interface EndpointQueriesPorts
  extends Part<'clock', 'now'>,
    Reads<'listEndpoints' | 'listDamagedEndpoints' | 'countBacklogs' | 'hasProbe' | 'lastFailures' | 'listFailures'> {
  readonly signerOf: SignerOf
  /** Where the config takes the key of an endpoint from; null: the key is not in the config, or is written there as text. */
  readonly keyOriginOf: (state: EndpointState) => SecretOrigin | null
}

/** A page of the endpoints that a search found. */
export interface FoundEndpoints {
  readonly endpoints: readonly EndpointView[]
  /** How many endpoints were found in all, on all pages. */
  readonly found: number
  /** All endpoints, found or not. */
  readonly all: readonly EndpointState[]
}

interface EndpointsPage {
  readonly cursor: number
  readonly limit: number
  readonly name: string | null
}

export function createEndpointQueries({ reads, signerOf, keyOriginOf, clock }: EndpointQueriesPorts) {
  /** All endpoints except the one for operator events, which is a setting and not managed here. */
  const all = async () => (await reads.listEndpoints()).filter(({ origin }) => origin !== 'operator').map(asItStands)

  /** Returns the state without keys that are no longer valid. */
  function asItStands(state: EndpointState): EndpointState {
    return state.keys === null ? state : { ...state, keys: keysAt(state.keys, clock.now()) }
  }

  /** Throws `not_found`. */
  async function stateOf(id: string): Promise<EndpointState> {
    const state = (await all()).find(({ endpoint }) => endpoint.id === id)
    return state ?? unknownEndpoint()
  }

  return {
    asItStands,
    stateOf,
    /** Finds an endpoint even if its row is damaged. Throws `not_found`. */
    namedAs: async (id: string): Promise<DamagedEndpoint> =>
      (await reads.listDamagedEndpoints()).find((one) => one.id === id) ?? (await stateOf(id)).endpoint,
    /** All endpoints, without counts of waiting deliveries. */
    states: all,
    async find(id: string): Promise<InspectedEndpoint> {
      const [state, nowMs] = [await stateOf(id), clock.now()]
      const signer = await signerOf(state, nowMs)
      return await inspectEndpoint(reads, state, { nowMs, fingerprints: signer?.fingerprints ?? null, keyFrom: keyOriginOf(state) })
    },
    /**
     * Lists up to `limit` endpoints with ids above `cursor`, in the order in which they were added. With a `name`, only that endpoint. `next`
     * null: this is the last page.
     */
    list: async (page: EndpointsPage) => await viewPage(reads, await all(), { ...page, nowMs: clock.now() }),
    /** Finds endpoints, the ones in trouble first. Leaves out the first `skip` and returns up to `limit` of the others. */
    async search({
      skip,
      limit,
      ...question
    }: EndpointSearch & { readonly skip: number; readonly limit: number }): Promise<FoundEndpoints> {
      const states = await all()
      const found = searchEndpoints(states, question)
      return { endpoints: await viewEndpoints(reads, found.slice(skip, skip + limit), clock.now()), found: found.length, all: states }
    },
  }
}

async function viewPage(
  reads: EndpointQueriesPorts['reads'],
  all: readonly EndpointState[],
  { cursor, limit, name, nowMs }: EndpointsPage & { readonly nowMs: number },
) {
  const after = all.filter(({ endpoint }) => Number(endpoint.id) > cursor && (name === null || endpoint.name === name))
  const states = after.slice(0, limit)
  return { endpoints: await viewEndpoints(reads, states, nowMs), next: after.length > limit ? (states.at(-1)?.endpoint.id ?? null) : null }
}

export function unknownEndpoint(): never {
  throw new AppError('not_found', 'There is no such endpoint.')
}

/** The gauges of one endpoint, or the sums of the gauges of several. */
export interface EndpointGauge {
  readonly name: string
  readonly waiting: number
  /** 0: nothing waits. */
  readonly oldestWaitingSeconds: number
  readonly dead: number
  /** How many endpoints are in each condition. */
  readonly conditions: Readonly<Record<EndpointCondition, number>>
}

const NONE: EndpointGauge['conditions'] = { failing: 0, disabled: 0, untried: 0, delivering: 0 }

/** The first `max` endpoints have separate gauges; all others are added up under the name `others`. */
interface GaugeNames {
  readonly max: number
  readonly others: string
}

/** Reads the gauges of the first endpoints, and the sums of all others, so that every waiting delivery is counted. */
export async function readEndpointGauges(
  { reads, clock }: Part<'clock', 'now'> & Reads<'listEndpoints' | 'countBacklogs'>,
  { max, others }: GaugeNames,
): Promise<readonly EndpointGauge[]> {
  const gauges = new Map<string, EndpointGauge>()
  const states = await reads.listEndpoints()
  const backlogs = await reads.countBacklogs(states.map(({ endpoint }) => endpoint.id))
  for (const [index, state] of states.entries()) {
    const name = index < max ? state.endpoint.name : others
    const known = gauges.get(name)
    const one = gaugeOf(state, name)
    gauges.set(name, known === undefined ? one : sumOf(known, one))
  }
  return [...gauges.values()]

  function gaugeOf(state: EndpointState, name: string): EndpointGauge {
    const { waiting, oldestAtMs, dead } = backlogs.get(state.endpoint.id) ?? NO_BACKLOG
    return {
      name,
      waiting,
      oldestWaitingSeconds: oldestAtMs === null ? 0 : Math.max(0, (clock.now() - oldestAtMs) / 1000),
      dead,
      conditions: { ...NONE, [conditionOf(state)]: 1 },
    }
  }
}

function sumOf(one: EndpointGauge, other: EndpointGauge): EndpointGauge {
  return {
    name: one.name,
    waiting: one.waiting + other.waiting,
    oldestWaitingSeconds: Math.max(one.oldestWaitingSeconds, other.oldestWaitingSeconds),
    dead: one.dead + other.dead,
    conditions: {
      failing: one.conditions.failing + other.conditions.failing,
      disabled: one.conditions.disabled + other.conditions.disabled,
      untried: one.conditions.untried + other.conditions.untried,
      delivering: one.conditions.delivering + other.conditions.delivering,
    },
  }
}
