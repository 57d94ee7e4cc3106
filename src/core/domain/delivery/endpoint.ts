/** Which events an endpoint wants. Null: events with any value (CONTRACT `endpoints`, `filters`). */
export interface EndpointFilters {
  readonly status: readonly string[] | null
  readonly detailedStatus: readonly string[] | null
  readonly distributionType: readonly string[] | null
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

/** The members of a recorded entry that filters look at. */
export interface RelayedEvent {
  readonly status: string
  readonly detailedStatus: string
  /** `''`: unknown. */
  readonly distributionType: string
  readonly displayToConsumer: boolean
}

export const noFilters: EndpointFilters = { status: null, detailedStatus: null, distributionType: null, displayToConsumer: null }

/** The settings that an endpoint has if nobody sets them. */
export const defaultSettings: Omit<EndpointSettings, 'name' | 'url'> = {
  enabled: true,
  signature: 'carrier',
  filters: noFilters,
  backfill: false,
  ratePerSecond: null,
  concurrency: null,
  scheduleMs: null,
  refusals: 'wait',
  headers: [],
}

/**
 * Whether an event passes every filter of an endpoint. Values are compared exactly, because the carrier chooses them freely. `enabled` does not
 * matter, because events of a disabled endpoint wait.
 */
export function passesFilters({ filters }: Pick<Endpoint, 'filters'>, event: RelayedEvent): boolean {
  return (
    isListed(filters.status, event.status) &&
    isListed(filters.detailedStatus, event.detailedStatus) &&
    isListed(filters.distributionType, event.distributionType) &&
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
