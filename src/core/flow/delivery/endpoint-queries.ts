import type { DamagedEndpoint } from '../../domain/delivery/endpoint.ts'
import { keysAt, type SecretOrigin } from '../../domain/delivery/endpoint-keys.ts'
import { type EndpointSearch, type EndpointState, searchEndpoints } from '../../domain/delivery/endpoint-state.ts'
import { AppError } from '../../domain/errors.ts'
import type { Part, Reads } from '../relay.ts'
import type { SignerOf } from './dispatching/send-delivery.ts'
import { type EndpointView, type InspectedEndpoint, inspectEndpoint, viewEndpoints } from './endpoint-view.ts'

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

export interface EndpointLists {
  /** Lists up to `limit` endpoints with ids above `cursor`, in the order in which they were added. With a `name`, only that endpoint. */
  list(page: { readonly cursor: number; readonly limit: number; readonly name: string | null }): Promise<{
    readonly endpoints: readonly EndpointView[]
    /** Null: this is the last page. */
    readonly next: string | null
  }>
  /** Finds endpoints, the ones in trouble first. Leaves out the first `skip` and returns up to `limit` of the others. */
  search(question: EndpointSearch & { readonly skip: number; readonly limit: number }): Promise<FoundEndpoints>
  /** All endpoints, without counts of waiting deliveries. */
  states(): Promise<readonly EndpointState[]>
  find(id: string): Promise<InspectedEndpoint>
}

export interface EndpointQueries extends EndpointLists {
  /** Throws `not_found`. */
  stateOf(id: string): Promise<EndpointState>
  /** Finds an endpoint even if its row is damaged. Throws `not_found`. */
  namedAs(id: string): Promise<DamagedEndpoint>
  /** Returns the state without keys that are no longer valid. */
  asItStands(state: EndpointState): EndpointState
}

export function createEndpointQueries({ reads, signerOf, keyOriginOf, clock }: EndpointQueriesPorts): EndpointQueries {
  /** All endpoints except the one for operator events, which is a setting and not managed here. */
  const all = async () => (await reads.listEndpoints()).filter(({ origin }) => origin !== 'operator').map(asItStands)

  function asItStands(state: EndpointState): EndpointState {
    return state.keys === null ? state : { ...state, keys: keysAt(state.keys, clock.now()) }
  }

  async function stateOf(id: string): Promise<EndpointState> {
    const state = (await all()).find(({ endpoint }) => endpoint.id === id)
    return state ?? unknownEndpoint()
  }

  return {
    asItStands,
    stateOf,
    namedAs: async (id) => (await reads.listDamagedEndpoints()).find((one) => one.id === id) ?? (await stateOf(id)).endpoint,
    states: all,
    async find(id) {
      const [state, nowMs] = [await stateOf(id), clock.now()]
      const signer = await signerOf(state, nowMs)
      return await inspectEndpoint(reads, state, { nowMs, fingerprints: signer?.fingerprints ?? null, keyFrom: keyOriginOf(state) })
    },
    list: async (page) => await viewPage(reads, await all(), { ...page, nowMs: clock.now() }),
    async search({ skip, limit, ...question }) {
      const states = await all()
      const found = searchEndpoints(states, question)
      return { endpoints: await viewEndpoints(reads, found.slice(skip, skip + limit), clock.now()), found: found.length, all: states }
    },
  }
}

async function viewPage(
  reads: EndpointQueriesPorts['reads'],
  all: readonly EndpointState[],
  { cursor, limit, name, nowMs }: Parameters<EndpointLists['list']>[0] & { readonly nowMs: number },
) {
  const after = all.filter(({ endpoint }) => Number(endpoint.id) > cursor && (name === null || endpoint.name === name))
  const states = after.slice(0, limit)
  return { endpoints: await viewEndpoints(reads, states, nowMs), next: after.length > limit ? (states.at(-1)?.endpoint.id ?? null) : null }
}

export function unknownEndpoint(): never {
  throw new AppError('not_found', 'There is no such endpoint.')
}
