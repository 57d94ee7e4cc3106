import type { BackfillSpan } from '../history/audience.ts'
import type { Endpoint, EndpointChange, EndpointSettings } from './endpoint.ts'
import type { EndpointHealth } from './endpoint-health.ts'
import type { SealedKeys } from './endpoint-keys.ts'
import type { ToldFailure } from './operator-event.ts'

/**
 * An endpoint of the config file. `from`: the sequence of the feed at which a new endpoint starts; null or absent: with what is recorded
 * from then on.
 */
export type ConfiguredEndpoint = EndpointSettings & { readonly from?: number | null } & ConfiguredSecretsMark

/** What the store learns of the secrets of an endpoint of the config. */
export interface ConfiguredSecretsMark {
  /** See `fingerprintSecrets`. Absent: not known. */
  readonly secretsFingerprint?: string
  /** Whether a reload has just changed them for this replica. Another one may have stored their fingerprint before. */
  readonly hasNewSecrets?: boolean
}

export interface EndpointState {
  readonly endpoint: Endpoint
  /** Who defines it. `config`: the config file; `managed`: the API; `operator`: the setting for operator events. */
  readonly origin: 'config' | 'managed' | 'operator'
  /**
   * Why it is disabled: by an operator, because of its 410, because everything failed, or because no config names it any more; null: it is
   * enabled.
   */
  readonly disabled: 'operator' | 'gone' | 'failing' | 'unnamed' | null
  /** Absent: it is enabled, or this was not stored when it was disabled. */
  readonly disabledSince?: DisabledSince
  readonly health: EndpointHealth
  /** Null: its key is in the config file. */
  readonly keys: SealedKeys | null
  /** Of the secrets in the config, as they were at the last start or reload. Absent: not known, or the config does not define it. */
  readonly secretsFingerprint?: string
  /** While it catches up, the last sequence of the feed that was queued for it; null: it has caught up. */
  readonly queuedTo: number | null
  /** The sequence of the feed at which it began: it is sent no earlier event. */
  readonly firstSequence: number
  /** The sequences over which it received backfill; null: never. */
  readonly backfilled: BackfillSpan | null
}

/** The state of an endpoint in one word. */
export type EndpointCondition = 'delivering' | 'failing' | 'disabled'

export function conditionOf({ disabled, health }: EndpointState): EndpointCondition {
  if (disabled !== null) return 'disabled'
  return health.probing === null ? 'delivering' : 'failing'
}

/** Selects endpoints. `condition` null: any. */
export interface EndpointSearch {
  /** Selects endpoints whose name or URL contains this, in upper or lower case. */
  readonly text: string
  readonly condition: EndpointCondition | null
}

const TROUBLE_FIRST: readonly EndpointCondition[] = ['failing', 'disabled', 'delivering']

/** The selected endpoints, by name. Endpoints in trouble come first. */
export function searchEndpoints(states: readonly EndpointState[], { text, condition }: EndpointSearch): readonly EndpointState[] {
  const sought = text.toLowerCase()
  const hasIt = ({ endpoint: { name, url } }: EndpointState) => [name, url].some((one) => one.toLowerCase().includes(sought))
  return states
    .filter((state) => (condition === null || conditionOf(state) === condition) && hasIt(state))
    .toSorted(
      (a, b) =>
        TROUBLE_FIRST.indexOf(conditionOf(a)) - TROUBLE_FIRST.indexOf(conditionOf(b)) ||
        a.endpoint.name.localeCompare(b.endpoint.name, 'en') ||
        Number(a.endpoint.id) - Number(b.endpoint.id),
    )
}

export interface DisabledSince {
  /** Epoch milliseconds. */
  readonly atMs: number
  /** The app or person who disabled it; null: the relay did. */
  readonly by: string | null
}

/** The endpoint, disabled for this reason; null: enabled. If it was so already, the time and the person stay. */
export function withDisabled(state: EndpointState, disabled: EndpointState['disabled'], since: DisabledSince): EndpointState {
  if (disabled === state.disabled) return state
  const { disabledSince: _before, ...rest } = state
  return disabled === null ? { ...rest, disabled } : { ...rest, disabled, disabledSince: since }
}

/** An endpoint that is still being sent the feed up to now. */
export interface CatchingUp extends EndpointState {
  readonly queuedTo: number
}

/** The deliveries that wait for an endpoint, and the ones that were given up. */
export interface EndpointBacklog {
  readonly waiting: number
  /** When the oldest waiting delivery was queued, epoch milliseconds; null: nothing waits. */
  readonly oldestAtMs: number | null
  readonly dead: number
}

/**
 * A managed endpoint to add, under a reserved id. `key` and the values of `headers`: sealed for this id. `from`: the sequence of the feed to
 * start at; null: now.
 */
export interface AddedEndpoint {
  readonly id: string
  readonly settings: EndpointSettings
  readonly key: string
  readonly headers?: Readonly<Record<string, string>>
  readonly from: number | null
  readonly nowMs: number
}

/** A change of a managed endpoint; `key` null: its keys stay. `headers`: sealed values of fixed headers to set; null removes one. */
export interface EndpointChangeRequest {
  readonly id: string
  readonly change: Omit<EndpointChange, 'headers'>
  readonly key: KeyChange | null
  readonly headers?: Readonly<Record<string, string | null>>
  readonly nowMs: number
}

/**
 * `rotate`: a new sealed key takes over after a time in which both sign. `replace`: it takes over at once. `end`: the next key takes over
 * now.
 */
export type KeyChange = { readonly kind: 'rotate' | 'replace'; readonly sealed: string } | { readonly kind: 'end' }

/**
 * The result of an edit. `unknown`: there is no such endpoint. `name_taken`: another endpoint has the name. `read_only`: the endpoint is defined in the
 * config file. `not_rotating`: no key is being replaced. `too_many_headers`: it would have more fixed headers than it may.
 */
export type EndpointEdit =
  | { readonly kind: 'done'; readonly state: EndpointState }
  | { readonly kind: 'unknown' | 'name_taken' | 'read_only' | 'not_rotating' | 'too_many_headers' }
  /** The endpoint cannot start at that sequence: events before `oldest` are no longer kept, or no event has a sequence above `last`. */
  | { readonly kind: 'from_gone'; readonly oldest: number }
  | { readonly kind: 'from_ahead'; readonly last: number }

/** A change of state that operators are notified of. */
export interface EndpointNotice {
  readonly endpoint: string
  readonly endpointId: string
  /** `failing`: everything has failed for `operator.failingAfter`. `recovered`: it accepted a delivery after that. */
  readonly kind: 'disabled_gone' | 'disabled_failing' | 'failing' | 'recovered'
  /** Its first failure, epoch milliseconds; null: there was none. */
  readonly sinceMs: number | null
  /** How the attempt failed that led to the notice; null: it did not, or this is not known. */
  readonly failure: ToldFailure | null
}
