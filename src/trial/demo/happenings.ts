import { type EventPicture, isFilled, type ParcelPicture, type Picture } from './picture.ts'

export type HappeningKind = 'pushed' | 'lost' | 'filled' | 'complete' | 'relayed'

export interface Happening {
  readonly kind: HappeningKind
  readonly trackingNumber: string
  readonly about: string
}

/** Lists what has happened between two pictures. `before` null: `now` is the first picture. */
export function happeningsBetween(before: Picture | null, now: Picture): readonly Happening[] {
  const earlier = new Map(before?.parcels.map((parcel) => [parcel.trackingNumber, parcel]))
  return now.parcels.flatMap((parcel) => happeningsOf(earlier.get(parcel.trackingNumber), parcel))
}

function happeningsOf(before: ParcelPicture | undefined, { trackingNumber, events, complete }: ParcelPicture): readonly Happening[] {
  const happened = events.flatMap((event, nth) =>
    eventHappenings(before?.events[nth], event).map((kind) => ({ kind, trackingNumber, about: event.title })),
  )
  if (!complete || before?.complete === true) return happened
  return [...happened, { kind: 'complete', trackingNumber, about: `${events.length} entries, the same bytes as the carrier's` }]
}

function eventHappenings(before: EventPicture | undefined, now: EventPicture): readonly HappeningKind[] {
  return [
    ...(now.mark === 'pushed' && before?.mark !== 'pushed' ? (['pushed'] as const) : []),
    ...(now.lost && before?.lost !== true ? (['lost'] as const) : []),
    ...(isFilled(now) && (before === undefined || !isFilled(before)) ? (['filled'] as const) : []),
  ]
}
