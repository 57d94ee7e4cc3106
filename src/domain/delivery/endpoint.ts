/** What an endpoint wants to be sent; `null`: of any value (CONTRACT `endpoints`, `filters`). */
export interface EndpointFilters {
  readonly status: readonly string[] | null
  readonly detailedStatus: readonly string[] | null
  readonly distributionType: readonly string[] | null
  readonly displayToConsumer: boolean | null
}

/** An internal subscriber, without its key: what is known of it may be shown anywhere. */
export interface Endpoint {
  readonly id: string
  /** A label; unique. */
  readonly name: string
  readonly url: string
  /** Disabled: everything waits, what comes meanwhile included (DOMAIN 7.4). */
  readonly enabled: boolean
  /** `standard-webhooks` adds that specification's headers to the carrier's own (CONTRACT, "Pushes to endpoints"). */
  readonly signature: 'carrier' | 'standard-webhooks'
  readonly filters: EndpointFilters
  /** Whether it also gets entries from before the relay knew the parcel (DOMAIN 6.6). */
  readonly backfill: boolean
  /** Attempts per second at most; `null`: no bound. */
  readonly ratePerSecond: number | null
  /** Attempts at the same time; `null`: as `delivery.perEndpoint` says. */
  readonly concurrency: number | null
  /** Waits between attempts, in milliseconds; `null`: as `delivery.schedule` says. */
  readonly scheduleMs: readonly number[] | null
}

/** Everything of an endpoint that somebody decides: what it is without its id. */
export type EndpointSettings = Omit<Endpoint, 'id'>

/** What is to be different; what is absent or undefined stays. */
export type EndpointChange = { readonly [Name in keyof EndpointSettings]?: EndpointSettings[Name] | undefined }

export function changeEndpoint(endpoint: Endpoint, change: EndpointChange): Endpoint {
  const isGiven = ([, value]: readonly [string, unknown]) => value !== undefined
  return { ...endpoint, ...Object.fromEntries(Object.entries(change).filter(isGiven)) }
}

/** What filters look at: an entry as it stands when it is recorded. */
export interface RelayedEvent {
  readonly status: string
  readonly detailedStatus: string
  /** `''`: not known. */
  readonly distributionType: string
  readonly displayToConsumer: boolean
  /** Whether it is backfill (DOMAIN 6.6). */
  readonly backfill: boolean
}

/** An endpoint that wants everything but backfill. */
export const noFilters: EndpointFilters = { status: null, detailedStatus: null, distributionType: null, displayToConsumer: null }

/**
 * Whether an event is to be delivered to an endpoint: it passes every filter, and backfill was asked for if it is that. Values are compared
 * exactly, because the vocabulary is the carrier's and open. Says nothing of `enabled`: a disabled endpoint's events wait, they are not lost.
 */
export function endpointWants(endpoint: Pick<Endpoint, 'filters' | 'backfill'>, event: RelayedEvent): boolean {
  const { filters } = endpoint
  return (
    (endpoint.backfill || !event.backfill) &&
    isListed(filters.status, event.status) &&
    isListed(filters.detailedStatus, event.detailedStatus) &&
    isListed(filters.distributionType, event.distributionType) &&
    (filters.displayToConsumer === null || filters.displayToConsumer === event.displayToConsumer)
  )
}

function isListed(wanted: readonly string[] | null, value: string): boolean {
  return wanted === null || wanted.includes(value)
}
