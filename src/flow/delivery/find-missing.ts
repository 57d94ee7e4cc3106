import { type AgeMark, givenBefore, type Retention } from '../../domain/admin/retention.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import {
  type BackfillEvents,
  type BackfillQuery,
  type MissingEvent,
  type MissingSelection,
  missingOf,
} from '../../domain/delivery/missing.ts'
import { withoutBackfill } from '../../domain/history/audience.ts'

export interface MissingSource {
  readBackfill(query: BackfillQuery): Promise<BackfillEvents>
  ageMarks(): Promise<readonly AgeMark[]>
}

export interface MissingRequest {
  readonly selection: MissingSelection
  /** The search begins after this sequence; null: it begins with the first event. */
  readonly after: number | null
  readonly limit: number
  readonly retention: Pick<Retention, 'deliveriesMs'>
  readonly nowMs: number
}

export interface MissingPart {
  /** The events that were found, in the order of their sequences. */
  readonly events: readonly MissingEvent[]
  /** The sequence after which the search continues; null: the search has ended. */
  readonly next: number | null
}

/**
 * Finds some of the events that an endpoint never received. Leaves out events that are so old that their deliveries are no longer kept,
 * because nobody knows whether they were sent.
 */
export async function findMissing(
  source: MissingSource,
  state: EndpointState,
  { selection, after, limit, retention, nowMs }: MissingRequest,
): Promise<MissingPart> {
  const fromMs = Math.max(selection.fromMs, nowMs - retention.deliveriesMs)
  // One parcel has few events, so finding out which of them to skip would cost more than it saves.
  const older = after === null && selection.parcelId === null ? givenBefore(await source.ageMarks(), fromMs).sequence : 0
  const behind = Math.max(after ?? 0, selection.fromSequence - 1, older)
  const stretch = withoutBackfill(state.backfilled, state.firstSequence).find(([, to]) => to > behind)
  if (stretch === undefined || stretch[0] > selection.toSequence) return { events: [], next: null }
  const [from, to] = stretch
  const upTo = Math.min(to, selection.toSequence)
  const { parcelId } = selection
  const found = await source.readBackfill({ endpointId: state.endpoint.id, parcelId, after: Math.max(behind, from - 1), upTo, limit })
  const events = found.events.flatMap((event) => missingOf(state, event, { ...selection, fromMs }) ?? [])
  return { events, next: found.next ?? (upTo < selection.toSequence ? upTo : null) }
}
