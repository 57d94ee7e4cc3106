import { LRUCache } from 'lru-cache'
import type { IdentifierState, LatestEntry, ParcelState } from '../../domain/history/parcel-state.ts'
import type { Session } from '../engine.ts'
import { createEventValues, createParcelStatuses, type EventValues } from '../history/event-values.ts'
import {
  createParcel,
  findIdentifier,
  findParcel,
  findParcels,
  insertParcel,
  lastParcelId,
  lookUpIdentifiers,
  saveIdentifier,
  saveParcel,
} from '../history/parcels.ts'
import type { Parcels } from '../write-store.ts'

/** The most parcels in the cache, and the most identifiers. Together they take about 10 MB. */
const REMEMBERED = 16_384

/**
 * Reads and writes parcels in the writer's transactions. Keeps parcels in a cache, so that the next event of a parcel needs no read. Call `forget`
 * after every rollback, and when other code has changed parcels.
 */
export interface KnownParcels extends Parcels {
  saveIdentifier(identifier: IdentifierState): void
  /** Inserts a parcel whose id is above `lastId`. */
  insert(state: ParcelState): void
  /** Returns the highest parcel id ever assigned. */
  lastId(): Promise<number>
  /** Stores a status that some parcel has had. */
  noteStatus(status: string): void
  readonly noteEventValue: EventValues['note']
}

export function createKnownParcels(session: Session): KnownParcels {
  const parcels = createParcelMemory(REMEMBERED)
  const identifiers = createKnownIdentifiers(session)
  const statuses = createParcelStatuses(session)
  const eventValues = createEventValues(session)
  /** The highest parcel id; null: not read yet. */
  let last: number | null = null

  function save(state: ParcelState): void {
    saveParcel(session, state, parcels.get(state.parcelId))
    if (state.latest !== null) statuses.note(state.latest.status)
    parcels.set(state)
  }

  async function findMany(parcelIds: readonly number[]): Promise<readonly ParcelState[]> {
    const found = new Map<number, ParcelState>()
    for (const parcelId of parcelIds) {
      const known = parcels.get(parcelId)
      if (known !== null) found.set(parcelId, known)
    }
    const unknown = parcelIds.filter((parcelId) => !found.has(parcelId))
    for (const state of unknown.length === 0 ? [] : await findParcels(session, unknown)) {
      parcels.set(state)
      found.set(state.parcelId, state)
    }
    return parcelIds.flatMap((parcelId) => found.get(parcelId) ?? [])
  }

  return {
    findIdentifiers: identifiers.find,
    saveIdentifier: identifiers.save,
    saveIdentifiers(all) {
      for (const identifier of all) identifiers.save(identifier)
    },
    async create(count, nowMs) {
      const created: ParcelState[] = []
      for (let nth = 0; nth < count; nth++) {
        const state = await createParcel(session, nowMs)
        last = state.parcelId
        parcels.set(state)
        created.push(state)
      }
      return created
    },
    async find(parcelId) {
      const known = parcels.get(parcelId)
      if (known !== null) return known
      const state = await findParcel(session, parcelId)
      if (state !== null) parcels.set(state)
      return state
    },
    findMany,
    // No lock is needed: SQLite has only one writer.
    hold: findMany,
    holdOf: identifiers.find,
    save,
    saveMany(states) {
      for (const state of states) save(state)
    },
    insert(state) {
      insertParcel(session, state)
      last = state.parcelId
      parcels.set(state)
    },
    async lastId() {
      last ??= await lastParcelId(session)
      return last
    },
    noteStatus: statuses.note,
    noteEventValue: eventValues.note,
    forgetGone(parcelIds, values) {
      for (const parcelId of parcelIds) parcels.delete(parcelId)
      identifiers.forget(values)
    },
    forget() {
      last = null
      statuses.forget()
      eventValues.forget()
      parcels.clear()
      identifiers.forgetAll()
    },
  }
}

function createKnownIdentifiers(session: Session) {
  const identifiers = new LRUCache<string, IdentifierState>({ max: REMEMBERED })

  async function findAll(values: readonly string[]): Promise<readonly IdentifierState[]> {
    const found = new Map<string, IdentifierState>()
    const unknown: string[] = []
    for (const value of values) {
      const known = identifiers.get(value)
      if (known === undefined) unknown.push(value)
      else found.set(value, known)
    }
    for (const known of unknown.length === 0 ? [] : await lookUpIdentifiers(session, unknown)) {
      identifiers.set(known.value, known)
      found.set(known.value, known)
    }
    return values.flatMap((value) => found.get(value) ?? [])
  }

  return {
    async find(values: readonly string[]): Promise<readonly IdentifierState[]> {
      const [only, ...more] = values
      if (only === undefined) return []
      if (more.length > 0) return await findAll(values)
      const known = identifiers.get(only) ?? (await findIdentifier(session, only))
      if (known === null) return []
      identifiers.set(only, known)
      return [known]
    },
    save(identifier: IdentifierState): void {
      saveIdentifier(session, identifier)
      identifiers.set(identifier.value, identifier)
    },
    forget(values: readonly string[]): void {
      for (const value of values) identifiers.delete(value)
    },
    forgetAll: () => identifiers.clear(),
  }
}

/** The position of each number in a parcel's row. */
const WATCHED_AT = 0
const FIRST_PUSHED_AT = 1
const REVIVED_AT = 2
const ENTRY_COUNT = 3
const LATEST_AT = 4
const HEARD_AT = 5
const CHECKED_AT = 6
const FAILURES = 7
const NEXT_POLL_AT = 8
const FULL = 9
const LATEST_LEARNT_AT = 10
const COLUMNS = 11

/**
 * Caches up to `max` parcels in typed arrays, which the garbage collector does not scan. With an object for each parcel, each push would
 * replace an object that is a few seconds old. At that age, objects are in the old generation of the garbage collector, and collecting that
 * generation pauses the writer.
 */
export function createParcelMemory(max: number) {
  const rows = new LRUCache<number, number>({ max })
  const numbers = new Float64Array(max * COLUMNS)
  const statuses = Array.from({ length: max }, () => '')
  /** Rows freed by deleted parcels. */
  let free: number[] = []
  const stopped = Array.from({ length: max }, (): ParcelState['stopped'] => null)

  const orNull = (at: number): number | null => {
    const value = numbers[at] ?? Number.NaN
    return Number.isNaN(value) ? null : value
  }
  const number = (at: number): number => numbers[at] ?? 0
  const latestIn = (row: number, atMs: number): LatestEntry => {
    const status = statuses[row] ?? ''
    const learntAtMs = orNull(row * COLUMNS + LATEST_LEARNT_AT)
    return learntAtMs === null ? { status, atMs } : { status, atMs, learntAtMs }
  }

  return {
    get(parcelId: number): ParcelState | null {
      const row = rows.get(parcelId)
      if (row === undefined) return null
      const from = row * COLUMNS
      const latestAtMs = orNull(from + LATEST_AT)
      return {
        parcelId,
        watchedAtMs: orNull(from + WATCHED_AT),
        firstPushedAtMs: orNull(from + FIRST_PUSHED_AT),
        activatedAtMs: number(from + REVIVED_AT),
        entryCount: number(from + ENTRY_COUNT),
        latest: latestAtMs === null ? null : latestIn(row, latestAtMs),
        lastSeenAtMs: orNull(from + HEARD_AT),
        checkedAtMs: orNull(from + CHECKED_AT),
        failures: number(from + FAILURES),
        nextPollAtMs: orNull(from + NEXT_POLL_AT),
        stopped: stopped[row] ?? null,
        full: number(from + FULL) === 1,
      }
    },
    set(state: ParcelState) {
      let row = rows.get(state.parcelId)
      if (row === undefined) {
        // If no row was freed, rows 0 to size - 1 are in use.
        row = free.pop() ?? (rows.size < max ? rows.size : (rows.pop() ?? 0))
        rows.set(state.parcelId, row)
      }
      const from = row * COLUMNS
      numbers[from + WATCHED_AT] = state.watchedAtMs ?? Number.NaN
      numbers[from + FIRST_PUSHED_AT] = state.firstPushedAtMs ?? Number.NaN
      numbers[from + REVIVED_AT] = state.activatedAtMs
      numbers[from + ENTRY_COUNT] = state.entryCount
      numbers[from + LATEST_AT] = state.latest?.atMs ?? Number.NaN
      numbers[from + LATEST_LEARNT_AT] = state.latest?.learntAtMs ?? Number.NaN
      numbers[from + HEARD_AT] = state.lastSeenAtMs ?? Number.NaN
      numbers[from + CHECKED_AT] = state.checkedAtMs ?? Number.NaN
      numbers[from + FAILURES] = state.failures
      numbers[from + NEXT_POLL_AT] = state.nextPollAtMs ?? Number.NaN
      numbers[from + FULL] = state.full ? 1 : 0
      statuses[row] = state.latest?.status ?? ''
      stopped[row] = state.stopped
    },
    delete(parcelId: number) {
      const row = rows.get(parcelId)
      if (row === undefined) return
      rows.delete(parcelId)
      free.push(row)
    },
    clear() {
      free = []
      rows.clear()
    },
  }
}
