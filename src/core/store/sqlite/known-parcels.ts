import { LRUCache } from 'lru-cache'
import { type IdentifierState, newParcel, type ParcelState } from '../../domain/history/parcel-state.ts'
import { decodeParcel, encodeParcel } from '../codec.ts'
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
import { COLUMNS } from '../tables.ts'
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

type Values = Record<string, number | string | null>

/** A row to copy: reading into a copy is three times as fast as adding column after column. */
const BLANK = encodeParcel(newParcel(0, 0))
const NUMBERS = Object.entries(COLUMNS.parcel).flatMap(([name, { type }]) => (type === 'text' ? [] : [name]))
const TEXTS = Object.keys(COLUMNS.parcel).filter((name) => !NUMBERS.includes(name))

/**
 * Caches the rows of up to `max` parcels, their numbers in a typed array, which the garbage collector does not scan. With an object for each parcel,
 * each push would replace an object that is a few seconds old. At that age, objects are in the old generation of the garbage collector, and collecting
 * that generation pauses the writer.
 */
export function createParcelMemory(max: number) {
  const rows = new LRUCache<number, number>({ max })
  const numbers = new Float64Array(max * NUMBERS.length)
  const texts = Array.from({ length: max * TEXTS.length }, (): string | null => null)
  /** Rows freed by deleted parcels. */
  let free: number[] = []

  return {
    get(parcelId: number): ParcelState | null {
      const nth = rows.get(parcelId)
      if (nth === undefined) return null
      const row = { ...BLANK }
      const values: Values = row
      let at = nth * NUMBERS.length
      for (const name of NUMBERS) {
        const value = numbers[at++] ?? Number.NaN
        values[name] = Number.isNaN(value) ? null : value
      }
      at = nth * TEXTS.length
      for (const name of TEXTS) values[name] = texts[at++] ?? null
      return decodeParcel(row)
    },
    set(state: ParcelState) {
      let row = rows.get(state.parcelId)
      if (row === undefined) {
        // If no row was freed, rows 0 to size - 1 are in use.
        row = free.pop() ?? (rows.size < max ? rows.size : (rows.pop() ?? 0))
        rows.set(state.parcelId, row)
      }
      const values: Values = encodeParcel(state)
      let at = row * NUMBERS.length
      for (const name of NUMBERS) {
        const value = values[name]
        numbers[at++] = typeof value === 'number' ? value : Number.NaN
      }
      at = row * TEXTS.length
      for (const name of TEXTS) {
        const value = values[name]
        texts[at++] = typeof value === 'string' ? value : null
      }
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
