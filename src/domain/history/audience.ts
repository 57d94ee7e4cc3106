/**
 * Whom a sighting was told of as an event of its own (DOMAIN 6.6, 7.1). `all`: all who want it. `backfill`: it was backfill, so only endpoints
 * that were given backfill at that sequence. `rest`: all but those, who had the entry as backfill before a push revealed it.
 */
export type Audience =
  | { readonly kind: 'nobody' }
  | { readonly kind: 'all' }
  | { readonly kind: 'backfill'; readonly at: number }
  | { readonly kind: 'rest'; readonly at: number }

export const noAudience: Audience = { kind: 'nobody' }
export const fullAudience: Audience = { kind: 'all' }

/** Over which events an endpoint was given backfill: from one sequence on, up to before another (null: still). */
export interface BackfillSpan {
  readonly from: number
  readonly to: number | null
}

/** Whom an entry was told of: everybody whom one of its sightings was told of. */
export function audienceOf(members: readonly { readonly audience: Audience }[]): Audience {
  const [only] = members
  if (members.length === 1 && only !== undefined) return only.audience
  return members.reduce<Audience>((audience, one) => uniteAudiences(audience, one.audience), noAudience)
}

/** Everybody whom the one or the other was told of. */
export function uniteAudiences(a: Audience, b: Audience): Audience {
  if (a.kind === 'nobody' || b.kind === 'all') return b
  if (b.kind === 'nobody' || a.kind === 'all') return a
  // Whoever was given backfill at one sequence is later too, unless it has changed its mind.
  if (a.kind === 'backfill' && b.kind === 'backfill') return { kind: a.kind, at: Math.max(a.at, b.at) }
  if (a.kind === 'rest' && b.kind === 'rest') return { kind: a.kind, at: Math.min(a.at, b.at) }
  return fullAudience
}

/** Whom an event tells of an entry that others were told of `before`; `backfill`: whether it is backfill, which it is only if nobody was. */
export function audienceOfEvent(before: Audience, event: { readonly sequence: number; readonly backfill: boolean }): Audience {
  if (before.kind === 'nobody') return event.backfill ? { kind: 'backfill', at: event.sequence } : fullAudience
  if (before.kind === 'all') return noAudience
  return { kind: before.kind === 'backfill' ? 'rest' : 'backfill', at: before.at }
}

/** Whether an endpoint is among those; `span`: null for one that was never given backfill. */
export function isInAudience(audience: Audience, span: BackfillSpan | null): boolean {
  if (audience.kind === 'nobody' || audience.kind === 'all') return audience.kind === 'all'
  const hadBackfill = span !== null && span.from <= audience.at && (span.to === null || audience.at < span.to)
  return hadBackfill === (audience.kind === 'backfill')
}

/** The span of an endpoint from the event `next` on, when it wants backfill from then on or does not. */
export function backfillSpan(before: BackfillSpan | null, wantsBackfill: boolean, next: number): BackfillSpan | null {
  const isOpen = before !== null && before.to === null
  if (isOpen === wantsBackfill) return before
  return before !== null && isOpen ? { ...before, to: next } : { from: next, to: null }
}
