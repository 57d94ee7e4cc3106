import type { Receiver } from '../history/audience.ts'
import type { EndpointHealth } from './endpoint-health.ts'
import type { SealedKeys } from './endpoint-keys.ts'
import type { ToldFailure } from './operator-event.ts'

/** What endpoints can be sent: entries, and what watchdogs tell (DOMAIN 9.7). */
export const ENDPOINT_EVENTS = ['entry', 'parcel.stalled', 'parcel.recovered'] as const

export type EndpointEvent = (typeof ENDPOINT_EVENTS)[number]

/** What an endpoint is sent unless it asks for more. Another relay, as an endpoint, takes nothing else. */
export const DEFAULT_EVENTS: readonly EndpointEvent[] = ['entry']

/** Which events an endpoint wants. Null: events with any value (CONTRACT `endpoints`, `filters`). */
export interface EndpointFilters {
  readonly status: readonly string[] | null
  readonly detailedStatus: readonly string[] | null
  readonly distributionType: readonly string[] | null
  /** Labels of the order, as `NAME` or `NAME=VALUE` (DOMAIN 8.7). */
  readonly label: readonly string[] | null
  readonly displayToConsumer: boolean | null
}

/** An internal subscriber, without its keys, so it may be shown anywhere. */
export interface Endpoint {
  readonly id: string
  /** A unique label. */
  readonly name: string
  readonly url: string
  /** False: all its deliveries wait, including those of new events (DOMAIN 7.4). */
  readonly enabled: boolean
  /** `carrier`: the carrier's headers; `standard-webhooks`: that specification's headers too (CONTRACT, "Pushes to endpoints"). */
  readonly signature: 'carrier' | 'standard-webhooks'
  readonly filters: EndpointFilters
  /** What it is sent, in the order of `ENDPOINT_EVENTS`; never empty. */
  readonly events: readonly EndpointEvent[]
  /** Whether the endpoint is also sent what happened before both it and the relay's knowledge of the parcel began (DOMAIN 7.1). */
  readonly backfill: boolean
  /** The limit of attempts per second; `null`: no limit. */
  readonly ratePerSecond: number | null
  /** The limit of concurrent attempts; `null`: `delivery.perEndpoint` applies. */
  readonly concurrency: number | null
  /** The waits between attempts; `null`: `delivery.schedule` applies. */
  readonly scheduleMs: readonly number[] | null
  /** `wait`: a refused delivery is tried again. `skip`: the delivery ends if the answer is final (`endsByRefusal` in `delivery.ts`). */
  readonly refusals: 'wait' | 'skip'
  /** The names of its fixed headers, lower-case. Their values are secrets, so they are stored with its keys (`SealedKeys`). */
  readonly headers: readonly string[]
}

/** An endpoint whose row in the store is damaged. It is left out of every list, but still has its name. */
export type DamagedEndpoint = Pick<Endpoint, 'id' | 'name'>

export type EndpointSettings = Omit<Endpoint, 'id'>

/** A change of settings; absent or undefined members stay as they are. */
export type EndpointChange = { readonly [Name in keyof EndpointSettings]?: EndpointSettings[Name] | undefined }

export function changeEndpoint(endpoint: Endpoint, change: EndpointChange): Endpoint {
  const isGiven = ([, value]: readonly [string, unknown]) => value !== undefined
  return { ...endpoint, ...Object.fromEntries(Object.entries(change).filter(isGiven)) }
}

/** Whether the URL or signature has changed, so that the endpoint may accept what it refused before. */
export function isSentDifferently(before: Pick<Endpoint, 'url' | 'signature'>, after: Pick<Endpoint, 'url' | 'signature'>): boolean {
  return before.url !== after.url || before.signature !== after.signature
}

/** The members of a recorded entry that filters look at. What watchdogs tell has those of the parcel's latest entry. */
export interface RelayedEvent {
  readonly status: string
  readonly detailedStatus: string
  /** `''`: unknown. */
  readonly distributionType: string
  readonly displayToConsumer: boolean
  /** See `filterableLabels`. */
  readonly labels: readonly string[]
}

export const noFilters: EndpointFilters = {
  status: null,
  detailedStatus: null,
  distributionType: null,
  label: null,
  displayToConsumer: null,
}

/** The settings that an endpoint has if nobody sets them. */
export const defaultSettings: Omit<EndpointSettings, 'name' | 'url'> = {
  enabled: true,
  signature: 'carrier',
  filters: noFilters,
  events: DEFAULT_EVENTS,
  backfill: false,
  ratePerSecond: null,
  concurrency: null,
  scheduleMs: null,
  refusals: 'wait',
  headers: [],
}

/**
 * Whether an endpoint is sent an event: it asks for such events, and this one passes every filter. Values are compared exactly, because the carrier
 * chooses them freely. `enabled` does not matter, because events of a disabled endpoint wait.
 */
export function takes({ events, filters }: Pick<Endpoint, 'events' | 'filters'>, name: EndpointEvent, event: RelayedEvent): boolean {
  return (
    events.includes(name) &&
    isListed(filters.status, event.status) &&
    isListed(filters.detailedStatus, event.detailedStatus) &&
    isListed(filters.distributionType, event.distributionType) &&
    (filters.label === null || event.labels.some((label) => isListed(filters.label, label))) &&
    (filters.displayToConsumer === null || filters.displayToConsumer === event.displayToConsumer)
  )
}

function isListed(wanted: readonly string[] | null, value: string): boolean {
  return wanted === null || wanted.includes(value)
}

/** Returns the name of an endpoint if a shell reads the name as one word without quotes, else the id. */
export function typedName({ id, name }: { readonly id: string; readonly name: string }): string {
  return /^[\w.-]+$/.test(name) ? name : id
}

/** Hides all of a URL but its origin, because the path and the parameters may contain a credential. */
export function maskPath(url: string): string {
  const { origin, pathname, search } = new URL(url)
  return pathname === '/' && search === '' ? origin : `${origin}/[redacted]`
}

/**
 * An endpoint of the config file. `from`: the sequence of the feed at which the endpoint starts if it is new; null or absent: it starts
 * with the events that are recorded after it was added.
 */
export type ConfiguredEndpoint = EndpointSettings & { readonly from?: number | null } & ConfiguredSecretsMark

/** Tells the store whether the secrets of an endpoint of the config have changed, without the secrets themselves. */
export interface ConfiguredSecretsMark {
  /** See `fingerprintSecrets`. Absent: not known. */
  readonly secretsFingerprint?: string
  /** Whether a reload in this replica has just changed the secrets. Needed because another replica may already have stored the new fingerprint. */
  readonly hasNewSecrets?: boolean
}

export interface EndpointState extends Receiver {
  readonly endpoint: Endpoint
  /** Who defines the endpoint. `config`: the config file; `managed`: the API; `operator`: the setting for operator events. */
  readonly origin: 'config' | 'managed' | 'operator'
  /**
   * Why it is disabled. `operator`: an operator disabled it. `gone`: it answered 410. `failing`: all its deliveries failed. `unnamed`: no
   * config names it any more. Null: it is enabled.
   */
  readonly disabled: 'operator' | 'gone' | 'failing' | 'unnamed' | null
  /** When and by whom it was disabled; absent: it is enabled, or that is not known. */
  readonly disabledSince?: DisabledSince
  readonly health: EndpointHealth
  /** Null: the config defines its keys. */
  readonly keys: SealedKeys | null
  /** The fingerprint of its secrets in the config at the last start or reload. Absent: not known, or the config does not define it. */
  readonly secretsFingerprint?: string
  /** While it catches up, the last sequence of the feed that was queued for it; null: it has caught up. */
  readonly queuedTo: number | null
}

/** `untried`: it is enabled and does not fail, but it has not accepted anything yet, so nobody knows whether it works. */
export type EndpointCondition = 'delivering' | 'untried' | 'failing' | 'disabled'

/** The conditions, the ones that need somebody first. */
export const CONDITIONS = ['failing', 'disabled', 'untried', 'delivering'] as const satisfies readonly EndpointCondition[]

export function conditionOf({ disabled, health }: EndpointState): EndpointCondition {
  if (disabled !== null) return 'disabled'
  if (health.probing !== null) return 'failing'
  return health.lastSuccessAtMs === null ? 'untried' : 'delivering'
}

/** `condition` null: any. */
export interface EndpointSearch {
  /** Selects endpoints whose name or URL contains this text. Case does not matter. */
  readonly text: string
  readonly condition: EndpointCondition | null
}

/** Returns the selected endpoints in the order of `CONDITIONS`, each group ordered by name. */
export function searchEndpoints(states: readonly EndpointState[], { text, condition }: EndpointSearch): readonly EndpointState[] {
  const sought = text.toLowerCase()
  const hasIt = ({ endpoint: { name, url } }: EndpointState) => [name, url].some((one) => one.toLowerCase().includes(sought))
  return states
    .filter((state) => (condition === null || conditionOf(state) === condition) && hasIt(state))
    .toSorted(
      (a, b) =>
        CONDITIONS.indexOf(conditionOf(a)) - CONDITIONS.indexOf(conditionOf(b)) ||
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

/** Disables the endpoint for a reason; null: enables it. If it is already disabled for this reason, its `disabledSince` stays. */
export function withDisabled(state: EndpointState, disabled: EndpointState['disabled'], since: DisabledSince): EndpointState {
  if (disabled === state.disabled) return state
  const { disabledSince: _before, ...rest } = state
  return disabled === null ? { ...rest, disabled } : { ...rest, disabled, disabledSince: since }
}

/** An endpoint for which older events of the feed are still being queued. */
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

export const NO_BACKLOG: EndpointBacklog = { waiting: 0, oldestAtMs: null, dead: 0 }

/**
 * A managed endpoint to add, under a reserved id. `key` and the values of `headers` are encrypted for this id. `from`: the sequence of the
 * feed to start at; null: start with the events that are recorded from now on.
 */
export interface AddedEndpoint {
  readonly id: string
  readonly settings: EndpointSettings
  readonly key: string
  readonly headers?: Readonly<Record<string, string>>
  readonly from: number | null
  readonly nowMs: number
}

/** A change of a managed endpoint. `key` null: its keys stay. `headers`: encrypted values of fixed headers; null removes a header. */
export interface EndpointChangeRequest {
  readonly id: string
  readonly change: Omit<EndpointChange, 'headers'>
  readonly key: KeyChange | null
  readonly headers?: Readonly<Record<string, string | null>>
  readonly nowMs: number
}

/**
 * `rotate`: a new key takes over after a time in which both keys sign. `replace`: a new key takes over at once. `end`: ends a rotation, so
 * that its new key takes over now. `sealed`: the new key, encrypted.
 */
export type KeyChange = { readonly kind: 'rotate' | 'replace'; readonly sealed: string } | { readonly kind: 'end' }

/**
 * The result of an edit. `unknown`: there is no such endpoint. `name_taken`: another endpoint has the name. `name_damaged`: one whose row is damaged has it. `read_only`: the endpoint is
 * defined in the config file. `not_rotating`: no key is being replaced. `too_many_headers`: more fixed headers than an endpoint may have.
 */
export type EndpointEdit =
  | { readonly kind: 'done'; readonly state: EndpointState }
  | { readonly kind: 'name_damaged'; readonly damagedId: string }
  | { readonly kind: 'unknown' | 'name_taken' | 'read_only' | 'not_rotating' | 'too_many_headers' }
  /** The endpoint cannot start at `from`: events before `oldest` are no longer kept, or no event has a sequence above `last`. */
  | { readonly kind: 'from_gone'; readonly oldest: number }
  | { readonly kind: 'from_ahead'; readonly last: number }

/** A change of state that operators are notified of. */
export interface EndpointNotice {
  readonly endpoint: string
  readonly endpointId: string
  /** `failing`: all attempts have failed for `operator.failingAfter`. `recovered`: after that, the endpoint accepted a delivery. */
  readonly kind: 'disabled_gone' | 'disabled_failing' | 'failing' | 'recovered'
  /** When the endpoint began to fail, epoch milliseconds; null: it has not failed. */
  readonly sinceMs: number | null
  /** The failure that led to the notice; null: the endpoint recovered, or the relay itself caused the failure. */
  readonly failure: ToldFailure | null
}

/*
 * An endpoint that a config defined, but that no config of any replica names any more (DOMAIN 7.4).
 *
 *   named ── no replica's config names it ──► unnamed: nothing is sent, everything queues
 *   unnamed ── a config names it again ──► named: the same id, the same backlog
 *   unnamed ── in this state, replicas have run for `removeAfterMs`, and one has loaded its config ──► removed
 *   unnamed ── an operator deletes it ──► removed
 *
 * While operators change the replicas one by one, or while a replica is down, there may for a while be no running replica whose config
 * names the endpoint. The endpoint must keep its id and its backlog meanwhile.
 */

export interface UnnamedEndpoint {
  readonly id: string
  /** Since when no config has named it, as far as the relay knows. Epoch milliseconds of the store's clock. */
  readonly sinceMs: number
  /** For how much of the time since `sinceMs` at least one replica was running, milliseconds. */
  readonly forMs: number
  /** Why it was disabled before it became unnamed; null: it was enabled. */
  readonly disabled: EndpointState['disabled']
}

/** The configs of the replicas that share a store. */
export interface ConfiguredNames {
  /** The names of the endpoints in any of these configs. */
  readonly names: readonly string[]
  /** When a replica last started or reloaded with one of these configs, epoch milliseconds; null: no replicas share the store. */
  readonly latestAtMs: number | null
}

export interface UnnamedRequest {
  /** The names of the endpoints in this replica's config. */
  readonly names: readonly string[]
  readonly nowMs: number
  /** How much time has passed since this replica last looked, milliseconds; 0: it looks for the first time. */
  readonly passedMs: number
  readonly removeAfterMs: number
  /**
   * Whether this replica has just loaded its config. If that config does not name an endpoint, an operator has removed the endpoint on
   * purpose.
   */
  readonly isStarting: boolean
}

interface UnnamedLook extends Omit<UnnamedRequest, 'names' | 'removeAfterMs'> {
  /** See `ConfiguredNames`. */
  readonly latestAtMs: number | null
}

/** Returns the updated record of an unnamed endpoint. `known`: its record so far; null: a config named it until now. */
export function lookAtUnnamed(
  { endpoint, disabled }: Pick<EndpointState, 'endpoint' | 'disabled'>,
  known: UnnamedEndpoint | null,
  { nowMs, passedMs, isStarting, latestAtMs }: UnnamedLook,
): UnnamedEndpoint {
  const sinceMs = known?.sinceMs ?? nowMs
  return {
    id: endpoint.id,
    sinceMs: isStarting ? Math.min(sinceMs, latestAtMs ?? sinceMs) : sinceMs,
    forMs: known === null ? 0 : known.forMs + passedMs,
    disabled: known === null ? disabled : known.disabled,
  }
}

/**
 * Whether the endpoint must be removed. It stays at least until a replica has loaded its config after the endpoint became unnamed. Before
 * that, an operator may still be changing the configs of the replicas one by one.
 */
export function isToBeRemoved({ sinceMs, forMs }: UnnamedEndpoint, latestAtMs: number | null, removeAfterMs: number): boolean {
  return forMs >= removeAfterMs && (latestAtMs === null || latestAtMs >= sinceMs)
}
