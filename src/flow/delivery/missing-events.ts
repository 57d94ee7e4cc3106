import type { Retention } from '../../domain/admin/retention.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import type { MissingEvent, MissingSelection } from '../../domain/delivery/missing.ts'
import type { Clock } from '../ports.ts'
import type { ReadSide } from '../read-side.ts'
import { findMissing } from './find-missing.ts'

export interface MissingEventsPorts {
  readonly reads: Pick<ReadSide, 'readBackfill' | 'ageMarks'>
  readonly retention: () => Pick<Retention, 'deliveriesMs'>
  readonly clock: Pick<Clock, 'now'>
  readonly yieldToIo: () => Promise<unknown>
}

export interface MissingCount {
  readonly count: number
  /** Whether there may be more, because the search has stopped at its limit. */
  readonly more: boolean
  readonly parcels: number
  /** When the first of these events was recorded, epoch milliseconds; null: there are none. */
  readonly oldestAtMs: number | null
}

export interface MissingPage {
  readonly events: readonly MissingEvent[]
  /** The sequence after which the next page begins; null: this is the last page. A next page may follow even if this page is not full. */
  readonly next: number | null
}

/** A search stops when it has found or read this many events. */
export interface MissingBounds {
  readonly found: number
  readonly lookedAt: number
}

/** A search lets other reads run after this many events, because for each event its whole parcel may have to be read. */
const STEP = 50

/** Finds events that an endpoint never received, without queueing them. */
export function createMissingEvents({ reads, retention, clock, yieldToIo }: MissingEventsPorts) {
  /** Searches and reports the events that it finds. Returns the sequence after which to continue; null: the search has reached the end. */
  async function search(
    state: EndpointState,
    { selection, from, bounds }: { readonly selection: MissingSelection; readonly from: number | null; readonly bounds: MissingBounds },
    onFound: (event: MissingEvent) => void,
  ): Promise<number | null> {
    let found = 0
    let after = from
    for (let lookedAt = 0; lookedAt < bounds.lookedAt && found < bounds.found; lookedAt += STEP) {
      const limit = Math.min(STEP, bounds.found - found)
      const part = await findMissing(reads, state, { selection, after, limit, retention: retention(), nowMs: clock.now() })
      for (const event of part.events) onFound(event)
      found += part.events.length
      after = part.next
      if (after === null) break
      await yieldToIo()
    }
    return after
  }

  return {
    async list(state: EndpointState, selection: MissingSelection, from: number | null, bounds: MissingBounds): Promise<MissingPage> {
      const events: MissingEvent[] = []
      const next = await search(state, { selection, from, bounds }, (event) => void events.push(event))
      return { events, next }
    },
    async count(state: EndpointState, selection: MissingSelection, bounds: MissingBounds): Promise<MissingCount> {
      const parcels = new Set<number>()
      let count = 0
      let oldestAtMs: number | null = null
      const next = await search(state, { selection, from: null, bounds }, ({ parcelId, recordedAtMs }) => {
        parcels.add(parcelId)
        count += 1
        oldestAtMs = Math.min(oldestAtMs ?? recordedAtMs, recordedAtMs)
      })
      return { count, more: next !== null, parcels: parcels.size, oldestAtMs }
    },
  }
}
