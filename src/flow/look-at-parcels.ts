import { AppError } from '../domain/errors.ts'
import type { Entry } from '../domain/history.ts'
import type { InspectedIdentifier, InspectedParcel, ListedParcel, ParcelCursor, ParcelQuery, ParcelState, ReadSide } from './ports.ts'
import { readIdentifier } from './read-identifier.ts'

export const STOPPED_REASONS = ['delivered', 'stale', 'unknown', 'unwatched'] as const satisfies readonly ParcelState['stopped'][]

/** A question for a list of parcels; null: not asked. `query` and `cursor` are raw text. */
export interface ListQuestion {
  readonly query: string | null
  readonly status: string | null
  readonly stopped: (typeof STOPPED_REASONS)[number] | null
  readonly cursor: string | null
  readonly limit: number
}

/** What operators can see of parcels (CONTRACT, `/relay/parcels`). Throws `bad_request`, `bad_tracking_number` and `not_found`. */
export interface LookAtParcels {
  list(question: ListQuestion): Promise<{ readonly parcels: readonly object[]; readonly next: string | null }>
  inspect(identifier: string): Promise<object>
}

const PREFIX = /^[A-Z0-9]{1,40}$/

export function createLookAtParcels({ reads }: { readonly reads: Pick<ReadSide, 'listParcels' | 'inspectParcel'> }): LookAtParcels {
  return {
    async list(question) {
      const { parcels, next } = await reads.listParcels(readQuestion(question))
      return { parcels: parcels.map(presentListed), next: next === null ? null : encodeCursor(next) }
    },
    async inspect(text) {
      const parcel = await reads.inspectParcel(readIdentifier(text))
      if (parcel === null) throw new AppError('not_found', 'No parcel has this identifier.')
      return presentInspected(parcel)
    },
  }
}

function readQuestion({ query, status, stopped, cursor, limit }: ListQuestion): ParcelQuery {
  const prefix = query?.trim().toUpperCase() ?? null
  if (prefix !== null && !PREFIX.test(prefix)) throw badRequest('query must be the first letters and digits of an identifier.')
  return { prefix, status, stopped, after: readCursor(cursor), limit }
}

function badRequest(message: string): AppError {
  return new AppError('bad_request', message)
}

function encodeCursor(cursor: ParcelCursor): string {
  return Object.values(cursor).join('.')
}

/** The place after which a list goes on, as `next` told it. */
function readCursor(text: string | null): ParcelCursor | null {
  if (text === null) return null
  const [by, first = '', second = ''] = text.split('.')
  const reason = STOPPED_REASONS.find((one) => one === first)
  if (by === 'identifier' && PREFIX.test(first)) return { by, value: first }
  if (by === 'next' && isCount(first) && isCount(second)) return { by, atMs: Number(first), parcelId: Number(second) }
  if (by === 'stopped' && reason !== undefined && isCount(second)) return { by, reason, parcelId: Number(second) }
  throw badRequest('cursor must be exactly what "next" of the page before says.')
}

function isCount(text: string): boolean {
  return /^\d{1,15}$/.test(text)
}

function presentListed({ state, identifiers }: ListedParcel): object {
  return { identifiers: identifiers.map(({ value }) => value), ...presentState(state) }
}

function presentState(state: ParcelState): object {
  return {
    status: state.latest?.status ?? null,
    statusAt: presentTime(state.latest?.atMs ?? null),
    entries: state.entryCount,
    full: state.full,
    cadence: {
      watchedAt: presentTime(state.watchedAtMs),
      nextCheckAt: presentTime(state.nextPollAtMs),
      lastCheckAt: presentTime(state.checkedAtMs),
      heardAt: presentTime(state.heardAtMs),
      failures: state.failures,
      stopped: state.nextPollAtMs === null ? state.stopped : null,
    },
  }
}

function presentInspected({ state, identifiers, entries }: InspectedParcel): object {
  return { identifiers: identifiers.map(presentIdentifier), ...presentState(state), history: entries.map(presentEntry) }
}

function presentIdentifier({ value, isTrackingId, refusedAtMs }: InspectedIdentifier): object {
  const kind = isTrackingId ? 'tracking id' : 'tracking number'
  return { value, kind, carrierKnowsIt: refusedAtMs === null, carrierRefusedItAt: presentTime(refusedAtMs) }
}

function presentEntry(entry: Entry): object {
  const { status, detailedStatus, eventTimestamp, location, displayToConsumer, sequence, texts } = entry
  return {
    status,
    detailedStatus,
    eventTimestamp,
    location,
    displayToConsumer,
    languages: Object.keys(texts).sort(),
    /** When the relay first learnt of it, by its own counter. */
    sequence,
    provenance: entry.members
      .map(({ sighting, sequence: learnt, askedAtMs }) => ({
        door: sighting.source,
        languages: Object.keys(sighting.texts).sort(),
        sequence: learnt,
        askedAt: sighting.source === 'poll' ? presentTime(askedAtMs) : null,
      }))
      .toSorted((a, b) => a.sequence - b.sequence),
  }
}

function presentTime(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString()
}
