import type { FilteredCount, InspectedParcel, ListedParcel, ParcelCursor, StoreCounts } from '../../core/domain/admin/parcel-list.ts'
import { AppError, isStoreUnavailable } from '../../core/domain/errors.ts'
import { DOCUMENTED_STATUSES } from '../../core/domain/history/observation.ts'
import type { ParcelState } from '../../core/domain/history/parcel-state.ts'
import { asTyped, readIdentifier } from '../../core/domain/identifiers.ts'
import {
  ASKED_TO_WAIT,
  describePoll,
  describeStop,
  UNKNOWN_ASKED_AGAIN,
  WAITS_FOR_CARRIER,
} from '../../core/domain/polling/best-poll-time.ts'
import { pausedUntilMs } from '../../core/domain/polling/carrier-answer.ts'
import { cadenceFactsOf } from '../../core/domain/polling/poll.ts'
import { wrongInput } from '../../core/domain/read-input.ts'
import { suggestName } from '../../core/domain/text.ts'
import type { Carrier } from '../../core/flow/ports.ts'
import type { Part, Reads, Relay, Writes } from '../../core/flow/relay-part.ts'

export const STOPPED_REASONS = ['delivered', 'stale', 'unknown', 'unwatched'] as const satisfies readonly ParcelState['stopped'][]

/** Selects a page of parcels. Null: no restriction; `cursor` null: the first page. */
export interface ListQuestion {
  /** As returned by `readPrefix`. */
  readonly query: string | null
  /** The number of their order. Absent or null: any. */
  readonly reference?: string | null
  readonly status: string | null
  readonly stopped: (typeof STOPPED_REASONS)[number] | null
  /** True: only parcels that the carrier did not know, by any identifier, when it was last asked. */
  readonly unknown?: boolean
  readonly cursor: ParcelCursor | null
  readonly limit: number
}

/** Lets operators view parcels (CONTRACT, `/relay/parcels`). Throws `bad_request`, `bad_tracking_number` and `not_found`. */
export type ParcelQueries = ReturnType<typeof createParcelQueries>

/** `waitsForCarrier`: calls to the carrier pause. Then `nextPollAtMs` is the earliest time of the next poll, which is made when the carrier answers again. */
export interface AwaitedParcel extends ListedParcel {
  readonly waitsForCarrier: boolean
}

/**
 * A parcel with a sentence that says when and why it is polled next, or why it is not polled. The sentence is null if nobody ever watched
 * the parcel, or if the reason cannot be found out now.
 */
export interface ExplainedParcel extends InspectedParcel, AwaitedParcel {
  readonly nextPollBecause: string | null
}

/** A count reads at most this many rows, so it takes about as long as a page of the list. */
export const COUNTED_MAX = 10_000
/** If the store has more statuses than this, no status is refused, because the error could not list all of them. */
const STATUSES_SHOWN_MAX = 100
const PREFIX = /^[A-Z0-9]{1,40}$/

export interface ParcelQueryPorts
  extends Part<'clock', 'now'>,
    Reads<'listParcels' | 'countParcels' | 'listStatuses' | 'inspectParcel'>,
    Writes<'planPoll' | 'erasedAtMs'> {
  readonly carrier: Pick<Carrier, 'state'>
}

export function createParcelQueries({ reads, write, clock, carrier }: ParcelQueryPorts) {
  function awaited<Parcel extends ListedParcel>(parcel: Parcel): Parcel & AwaitedParcel {
    const { nextPollAtMs } = parcel.state
    const untilMs = pausedUntilMs(carrier.state(), clock.now())
    if (untilMs === null || nextPollAtMs === null) return { ...parcel, waitsForCarrier: false }
    return { ...parcel, state: { ...parcel.state, nextPollAtMs: Math.max(nextPollAtMs, untilMs) }, waitsForCarrier: true }
  }

  async function explain(state: ParcelState): Promise<string | null> {
    if (state.nextPollAtMs === null) return state.stopped === null ? null : describeStop(state.stopped)
    if (state.stopped === 'unknown') return UNKNOWN_ASKED_AGAIN
    // Show the parcel even if the plan of its next poll cannot be read.
    const planned = await write.planPoll(cadenceFactsOf(state, false, clock.now())).catch(nullForStorage)
    if (planned === null) return null
    if (planned.kind === 'stopped') return describeStop(planned.reason)
    // The stored time is later than the plan only if the carrier has asked the relay to wait.
    const isHeld = planned.why.kind === 'failed' && planned.atMs < state.nextPollAtMs
    return isHeld ? ASKED_TO_WAIT : describePoll(planned.why)
  }

  /** Refuses a status that is neither documented nor stored. It is probably a typing error, which an empty list would hide. */
  async function refuseUnknown(status: string): Promise<void> {
    const known = [...new Set([...DOCUMENTED_STATUSES, ...(await reads.listStatuses())])]
    if (known.includes(status) || known.length > STATUSES_SHOWN_MAX) return
    const near = suggestName(status, known)
    const hint = near === null ? '' : `; did you mean ${near}?`
    throw wrongInput('query', 'status', `status must be one that parcels had: ${known.join(', ')}${hint === '' ? '.' : hint}`)
  }

  return {
    async list({
      query,
      reference = null,
      status,
      stopped,
      unknown = false,
      cursor,
      limit,
    }: ListQuestion): Promise<{ readonly parcels: readonly AwaitedParcel[]; readonly next: string | null }> {
      if (query !== null && reference !== null) throw wrongInput('query', 'reference', 'Give query or reference, not both.')
      if (status !== null) await refuseUnknown(status)
      const { parcels, next } = await reads.listParcels({
        prefix: query,
        reference,
        status,
        stopped,
        isUnknown: unknown,
        after: cursor,
        limit,
      })
      return { parcels: parcels.map((one) => awaited(one)), next: next === null ? null : encodeCursor(next) }
    },
    /** Counts what `list` lists over all pages, up to `COUNTED_MAX`. */
    count: ({ query, ...filter }: Pick<ListQuestion, 'query' | 'reference' | 'status' | 'stopped'>): Promise<FilteredCount> =>
      reads.countParcels({ prefix: query, ...filter }, COUNTED_MAX),
    async inspect(text: string): Promise<ExplainedParcel> {
      const identifier = readIdentifier(text)
      const parcel = await reads.inspectParcel(identifier)
      if (parcel === null) {
        const erasedAtMs = await write.erasedAtMs({ identifier, nowMs: clock.now() }).catch(nullForStorage)
        const erased = erasedAtMs === null ? '' : ` The parcel that had it was erased at ${new Date(erasedAtMs).toISOString()}.`
        throw new AppError('not_found', `No parcel has this identifier.${erased}`)
      }
      const shown = awaited(parcel)
      return { ...shown, nextPollBecause: shown.waitsForCarrier ? WAITS_FOR_CARRIER : await explain(parcel.state) }
    },
  }
}

function nullForStorage(error: unknown): null {
  if (isStoreUnavailable(error)) return null
  throw error
}

/** Normalizes the beginning of an identifier; null: no identifier can begin like this. */
export function readPrefix(text: string): string | null {
  const prefix = asTyped(text).toUpperCase()
  return PREFIX.test(prefix) ? prefix : null
}

function encodeCursor(cursor: ParcelCursor): string {
  return Object.values(cursor).join('.')
}

/** Null: the text is no cursor. */
export function readCursor(text: string): ParcelCursor | null {
  const [by, first = '', second = ''] = text.split('.')
  const reason = STOPPED_REASONS.find((one) => one === first)
  if (by === 'identifier' && PREFIX.test(first)) return { by, value: first }
  if (by === 'reference' && isCount(first)) return { by, parcelId: Number(first) }
  if (by === 'next' && isCount(first) && isCount(second)) return { by, atMs: Number(first), parcelId: Number(second) }
  if (by === 'stopped' && reason !== undefined && isCount(second)) return { by, reason, parcelId: Number(second) }
  return null
}

function isCount(text: string): boolean {
  return /^\d{1,15}$/.test(text)
}

/** Counting this many parcels takes a good part of a second. So a store with at least this many is counted only once a minute. */
const LARGE = 500_000
const KEPT_MS = 60_000

type Parts = Pick<Relay, 'clock'> & Reads<'counts' | 'countQuarantined'>

/** Counts what the store holds. Pushes in quarantine are counted at each call. In a large store, all else is counted at most once a minute. */
export function createKnownCounts({ reads, clock }: Parts): () => Promise<StoreCounts> {
  let known: { readonly counts: Promise<StoreCounts>; readonly atMs: number } | null = null
  return async () => {
    if (known !== null && clock.monotonic() - known.atMs < KEPT_MS)
      return { ...(await known.counts), quarantined: await reads.countQuarantined() }
    const asked = { counts: reads.counts(clock.now()), atMs: clock.monotonic() }
    const counts = await asked.counts
    if (counts.parcels >= LARGE) known = asked
    return counts
  }
}
