/** How an event reports backfill: an entry that is older than the relay's first knowledge of its parcel (DOMAIN 6.6). */
export interface Backfill {
  /** Endpoints that began by this time are sent the event, too, epoch milliseconds. Null: only endpoints with `backfill` are sent it. */
  readonly beganBy: number | null
}

/** An event that reported an entry as backfill. `at`: its sequence. */
export interface Telling extends Backfill {
  readonly at: number
}

/**
 * The endpoints that were sent a sighting (DOMAIN 6.6, 7.1). `all`: every endpoint whose filters let it pass. `backfill`: only the endpoints
 * that at least one of the tellings went to. `rest`: only the endpoints that none of the tellings went to.
 */
export type Audience =
  | { readonly kind: 'nobody' }
  | { readonly kind: 'all' }
  | { readonly kind: 'backfill' | 'rest'; readonly tellings: readonly Telling[] }

export const noAudience: Audience = { kind: 'nobody' }
export const fullAudience: Audience = { kind: 'all' }

/** The part of an endpoint's state that decides which backfill it is sent, and was sent. */
export interface Receiver {
  /** The sequence of the feed at which it started. It is not sent earlier events. */
  readonly firstSequence: number
  /** When it began, epoch milliseconds. It is sent what has happened since then, if it is recorded from `firstSequence` on (DOMAIN 7.1). */
  readonly beganAtMs: number
  /** The sequences of the feed between which its setting `backfill` was on; null: never. */
  readonly backfilled: BackfillSpan | null
}

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
  if (a.kind === 'backfill' && b.kind === 'backfill') return { kind: a.kind, tellings: uniteTellings(a.tellings, b.tellings) }
  if (a.kind === 'rest' && b.kind === 'rest') {
    if (areAmong(a.tellings, b.tellings)) return a
    if (areAmong(b.tellings, a.tellings)) return b
  }
  return fullAudience
}

function uniteTellings(a: readonly Telling[], b: readonly Telling[]): readonly Telling[] {
  return areAmong(b, a) ? a : [...a, ...b.filter((one) => !areAmong([one], a))].sort((x, y) => x.at - y.at)
}

function areAmong(some: readonly Telling[], all: readonly Telling[]): boolean {
  return some.every(({ at }) => all.some((one) => one.at === at))
}

/** Returns the endpoints that an event adds to the audience of its entry. An event can be backfill only if no endpoint was sent the entry yet. */
export function audienceOfEvent(before: Audience, event: { readonly sequence: number; readonly backfill: Backfill | null }): Audience {
  if (before.kind === 'nobody') {
    return event.backfill === null ? fullAudience : { kind: 'backfill', tellings: [{ at: event.sequence, ...event.backfill }] }
  }
  if (before.kind === 'all') return noAudience
  return { kind: before.kind === 'backfill' ? 'rest' : 'backfill', tellings: before.tellings }
}

export function isInAudience(audience: Audience, receiver: Receiver): boolean {
  if (audience.kind === 'nobody' || audience.kind === 'all') return audience.kind === 'all'
  return audience.tellings.some((telling) => isTold(receiver, telling)) === (audience.kind === 'backfill')
}

/** Whether an event that reports backfill is sent to an endpoint, if the endpoint's filters let it pass. */
export function isTold({ firstSequence, beganAtMs, backfilled }: Receiver, { at, beganBy }: Telling): boolean {
  return hadBackfill(backfilled, at) || (beganBy !== null && beganAtMs <= beganBy && firstSequence <= at)
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
