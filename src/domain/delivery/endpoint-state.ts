import type { BackfillSpan } from '../history/audience.ts'
import type { Endpoint, EndpointChange, EndpointSettings } from './endpoint.ts'
import type { EndpointHealth } from './endpoint-health.ts'
import type { SealedKeys } from './endpoint-keys.ts'

/** `from`: the sequence it starts at when it is new; null or absent: what is recorded from then on. */
export type ConfiguredEndpoint = EndpointSettings & { readonly from?: number | null }

/** An endpoint and how it fares. */
export interface EndpointState {
  readonly endpoint: Endpoint
  /** `config`: the config file says what it is; `managed`: the API does; `operator`: where operator events go. */
  readonly origin: 'config' | 'managed' | 'operator'
  /** Why it is disabled: by order, by its 410, or by nothing but failures; null: it is not. */
  readonly disabled: 'operator' | 'gone' | 'failing' | null
  readonly health: EndpointHealth
  /** Null: the config file names its key. */
  readonly keys: SealedKeys | null
  /** Up to which sequence the feed has been queued for it; null: all of it, or all it is owed. */
  readonly queuedTo: number | null
  /** Over which events it was given backfill; null: over none. */
  readonly backfilled: BackfillSpan | null
}

/** How much is owed to an endpoint, and was given up. */
export interface EndpointBacklog {
  readonly waiting: number
  /** When the first of what waits was queued; null: nothing waits. */
  readonly oldestAtMs: number | null
  readonly dead: number
}

export interface EndpointChangeRequest {
  readonly id: string
  readonly change: EndpointChange
  readonly key: KeyChange | null
  readonly nowMs: number
}

/** `rotate`: another key, sealed, takes over after a time in which both sign; `replace`: at once; `end`: the one that is to take over does so now. */
export type KeyChange = { readonly kind: 'rotate' | 'replace'; readonly sealed: string } | { readonly kind: 'end' }

/** What came of an edit. `read_only`: the config file says what it is; `not_rotating`: no key is being replaced. */
export type EndpointEdit =
  | { readonly kind: 'done'; readonly state: EndpointState }
  | { readonly kind: 'unknown' | 'name_taken' | 'read_only' | 'not_rotating' }
  /** It cannot start there: events before `oldest` are no longer kept, or none has a sequence above `last`. */
  | { readonly kind: 'from_gone'; readonly oldest: number }
  | { readonly kind: 'from_ahead'; readonly last: number }

export interface EndpointNotice {
  readonly endpoint: string
  readonly endpointId: string
  /** `recovered`: it took something again after an hour or more of nothing but failures. */
  readonly kind: 'disabled_gone' | 'disabled_failing' | 'recovered'
}
