import type { Entry } from '../history/history.ts'
import { filterableLabels, type OrderContext } from '../history/order-context.ts'
import type { Endpoint, EndpointEvent, RelayedEvent } from './endpoint-state.ts'

// What endpoints are sent of watchdogs: a body of the relay's own, because the carrier has no event for it (DOMAIN 9.7).

/** A parcel of which a watchdog tells something. */
export interface ToldParcel {
  readonly parcelId: number
  readonly identifiers: readonly string[]
  readonly order: OrderContext
  /** Its history, newest first (DOMAIN 3.1). */
  readonly entries: readonly Entry[]
  readonly distributionType: string
}

/** Why a parcel is no longer stalled. `observation`: what the relay learnt ended it. `rule`: the rule was changed or removed. */
export type RecoveredBecause = 'observation' | 'rule'

/** What a watchdog tells of a breach. */
export type WatchdogTold = { readonly rule: string; readonly sinceMs: number; readonly atMs: number } & (
  | { readonly kind: 'stalled'; readonly checked: boolean }
  // Null: not known any more.
  | { readonly kind: 'recovered'; readonly because: RecoveredBecause | null }
)

export type WatchdogKind = WatchdogTold['kind']

export type WatchdogEventName = Exclude<EndpointEvent, 'entry'>

export function eventOf(kind: WatchdogKind): WatchdogEventName {
  return `parcel.${kind}`
}

export function asksForNews({ events }: Pick<Endpoint, 'events'>): boolean {
  return events.some((name) => name !== 'entry')
}

/** The members that filters look at: those of the parcel's latest entry. */
export function filteredOf({ entries: [latest], distributionType, order }: ToldParcel): RelayedEvent {
  const { status, detailedStatus, displayToConsumer } = latest ?? { status: '', detailedStatus: '', displayToConsumer: false }
  return { status, detailedStatus, displayToConsumer, distributionType, labels: filterableLabels(order) }
}

/** The body for endpoints. It has no member `status`, so another relay that is sent it by mistake takes it for no event of a parcel. */
export function encodeWatchdogEvent(told: WatchdogTold, { parcelId, identifiers, order, entries: [latest] }: ToldParcel): Uint8Array {
  const { reference, labels } = order
  return Buffer.from(
    JSON.stringify({
      // The first member, by which `watchdogEventIn` knows it.
      event: eventOf(told.kind),
      at: isoOf(told.atMs),
      rule: told.rule,
      since: isoOf(told.sinceMs),
      ...(told.kind === 'stalled' ? { checked: told.checked } : { because: told.because }),
      parcel: {
        id: String(parcelId),
        identifiers: identifiers.toSorted(),
        reference,
        labels,
        latest:
          latest === undefined
            ? null
            : { status: latest.status, detailedStatus: latest.detailedStatus, eventTimestamp: latest.eventTimestamp },
      },
    }),
  )
}

const KNOWN = (['parcel.stalled', 'parcel.recovered'] as const).map((name) => [name, Buffer.from(`{"event":"${name}",`)] as const)

/** Returns which event of watchdogs a body is that the relay has composed; null: it is another one. A push of the carrier may say anything. */
export function watchdogEventIn(composed: Uint8Array): WatchdogEventName | null {
  return KNOWN.find(([, start]) => start.equals(Buffer.from(composed.slice(0, start.length))))?.[0] ?? null
}

function isoOf(atMs: number): string {
  return new Date(atMs).toISOString()
}
