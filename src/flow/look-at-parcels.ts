import { AppError } from '../domain/errors.ts'
import type { Entry } from '../domain/history.ts'
import type { InspectedIdentifier, InspectedParcel, ListedParcel, ParcelCursor, ParcelQuery, ParcelState, ReadSide } from './ports.ts'
import { readIdentifier } from './read-identifier.ts'

/** A question for a list of parcels as the edge hands it over: undefined is not asked, anything but one string a mistake. */
export interface ListQuestion {
  readonly query: unknown
  readonly status: unknown
  readonly stopped: unknown
  readonly cursor: unknown
  readonly limit: unknown
}

/** What operators can see of parcels (CONTRACT, `/relay/parcels`). Throws `bad_request`, `bad_tracking_number` and `not_found`. */
export interface LookAtParcels {
  list(question: ListQuestion): Promise<{ readonly parcels: readonly object[]; readonly next: string | null }>
  inspect(identifier: string): Promise<object>
}

const LIMIT = { usual: 100, max: 500 } as const
const PREFIX = /^[A-Z0-9]{1,40}$/
const REASONS: readonly NonNullable<ParcelState['stopped']>[] = ['delivered', 'stale', 'unknown', 'unwatched']

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
  const prefix = readOne('query', query)?.trim().toUpperCase() ?? null
  if (prefix !== null && !PREFIX.test(prefix)) throw badRequest('query: the first letters and digits of an identifier')
  const reason = readOne('stopped', stopped)
  const known = REASONS.find((one) => one === reason) ?? null
  if (reason !== null && known === null) throw badRequest(`stopped: one of ${REASONS.join(', ')}`)
  const asked = readOne('limit', limit)
  const count = asked === null ? LIMIT.usual : Number(asked)
  if (!Number.isInteger(count) || count < 1 || count > LIMIT.max) throw badRequest(`limit: 1 to ${LIMIT.max}`)
  return { prefix, status: readOne('status', status), stopped: known, after: readCursor(readOne('cursor', cursor)), limit: count }
}

function readOne(name: string, value: unknown): string | null {
  if (value === undefined) return null
  if (typeof value !== 'string' || value.length > 1000) throw badRequest(`${name}: at most once`)
  return value
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
  const reason = REASONS.find((one) => one === first)
  if (by === 'identifier' && PREFIX.test(first)) return { by, value: first }
  if (by === 'next' && isCount(first) && isCount(second)) return { by, atMs: Number(first), parcelId: Number(second) }
  if (by === 'stopped' && reason !== undefined && isCount(second)) return { by, reason, parcelId: Number(second) }
  throw badRequest('cursor: exactly what "next" of the page before says')
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
