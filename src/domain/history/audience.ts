/**
 * The endpoints that were sent a sighting (DOMAIN 6.6, 7.1). `all`: every endpoint whose filters let it pass. `backfill`: only the endpoints
 * that received backfill at sequence `at` of the feed. `rest`: only the endpoints that did not receive backfill at sequence `at`.
 */
export type Audience =
  | { readonly kind: 'nobody' }
  | { readonly kind: 'all' }
  | { readonly kind: 'backfill'; readonly at: number }
  | { readonly kind: 'rest'; readonly at: number }

export const noAudience: Audience = { kind: 'nobody' }
export const fullAudience: Audience = { kind: 'all' }

/**
 * The sequences of the feed at which an endpoint received backfill: from `from` (inclusive) to `to` (exclusive). `to` null: it still
 * receives backfill.
 */
export interface BackfillSpan {
  readonly from: number
  readonly to: number | null
  /** Earlier spans, if backfill was turned off and on again: `from` inclusive, `to` exclusive. Absent: backfill was turned on only once. */
  readonly earlier?: readonly (readonly [from: number, to: number])[]
}

/** Returns the audience of an entry: every endpoint that was sent at least one of its sightings. */
export function audienceOf(members: readonly { readonly audience: Audience }[]): Audience {
  const [only] = members
  if (members.length === 1 && only !== undefined) return only.audience
  return members.reduce<Audience>((audience, one) => uniteAudiences(audience, one.audience), noAudience)
}

export function uniteAudiences(a: Audience, b: Audience): Audience {
  if (a.kind === 'nobody' || b.kind === 'all') return b
  if (b.kind === 'nobody' || a.kind === 'all') return a
  // An endpoint that received backfill at the lower sequence usually receives it at the higher one. So the higher sequence stands for both.
  if (a.kind === 'backfill' && b.kind === 'backfill') return { kind: a.kind, at: Math.max(a.at, b.at) }
  if (a.kind === 'rest' && b.kind === 'rest') return { kind: a.kind, at: Math.min(a.at, b.at) }
  return fullAudience
}

/** Returns the endpoints that an event adds to the audience of its entry. An event can be backfill only if no endpoint was sent the entry yet. */
export function audienceOfEvent(before: Audience, event: { readonly sequence: number; readonly backfill: boolean }): Audience {
  if (before.kind === 'nobody') return event.backfill ? { kind: 'backfill', at: event.sequence } : fullAudience
  if (before.kind === 'all') return noAudience
  return { kind: before.kind === 'backfill' ? 'rest' : 'backfill', at: before.at }
}

/** `span`: the sequences at which the endpoint received backfill; null: none. */
export function isInAudience(audience: Audience, span: BackfillSpan | null): boolean {
  if (audience.kind === 'nobody' || audience.kind === 'all') return audience.kind === 'all'
  return hadBackfill(span, audience.at) === (audience.kind === 'backfill')
}

function hadBackfill(span: BackfillSpan | null, at: number): boolean {
  if (span === null) return false
  if (span.from <= at) return span.to === null || at < span.to
  return span.earlier?.some(([from, to]) => from <= at && at < to) ?? false
}

/**
 * Returns the span of an endpoint after its setting for backfill became `wantsBackfill` at sequence `next`. Null: the endpoint never
 * received backfill. Spans before `next` are kept.
 */
export function backfillSpan(before: BackfillSpan | null, wantsBackfill: boolean, next: number): BackfillSpan | null {
  const isOpen = before !== null && before.to === null
  if (isOpen === wantsBackfill) return before
  if (before === null) return { from: next, to: null }
  const { from, to, earlier = [] } = before
  if (to === null) return { ...before, to: next }
  return { from: next, to: null, earlier: withSpan(earlier, from, to) }
}

/**
 * Adds a span to the earlier ones. An empty span adds nothing, and a span that begins where the last one ended extends it. So switching
 * backfill off and on without new events in between does not lengthen the list.
 */
function withSpan(earlier: NonNullable<BackfillSpan['earlier']>, from: number, to: number): NonNullable<BackfillSpan['earlier']> {
  if (from === to) return earlier
  const [begin, end] = earlier.at(-1) ?? [from, null]
  return end === from ? [...earlier.slice(0, -1), [begin, to]] : [...earlier, [from, to]]
}

/** Returns the first and last sequence of each part of the feed, from `first` on, in which an endpoint received no backfill. */
export function withoutBackfill(span: BackfillSpan | null, first: number): readonly (readonly [from: number, to: number])[] {
  const spans = span === null ? [] : [...(span.earlier ?? []), [span.from, span.to ?? Number.POSITIVE_INFINITY] as const]
  const stretches: (readonly [number, number])[] = []
  let from = first
  for (const [begin, end] of spans) {
    if (begin > from) stretches.push([from, begin - 1])
    from = Math.max(from, end)
  }
  return Number.isFinite(from) ? [...stretches, [from, Number.MAX_SAFE_INTEGER]] : stretches
}
