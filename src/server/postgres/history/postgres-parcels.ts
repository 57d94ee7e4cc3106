import { sql } from 'kysely'
import type { IdentifierState, ParcelState } from '../../../core/domain/history/parcel-state.ts'
import { decodeParcel, encodeParcel } from '../../../core/store/codec.ts'
import type { Session } from '../../../core/store/engine.ts'
import { decodeIdentifier, identifierRow, loadIdentifiersOf, lookUpIdentifiers } from '../../../core/store/history/parcels.ts'
import { statement } from '../../../core/store/statement.ts'
import { COLUMNS } from '../../../core/store/tables.ts'
import type { Parcels } from '../../../core/store/write-store.ts'
import { type Columns, enqueueRows, givenRows, rawStatement, replaced } from '../postgres-dialect.ts'
import { metAnother } from '../postgres-failure.ts'

/**
 * Takes a run of 10,000 unused numbers, more than any batch needs, and returns the first. Each run is above all earlier runs, so an older
 * parcel always has a lower number than a newer one.
 */
export const takeParcelNumbers = rawStatement()(() => sql<{ first: number }>`select nextval('parcel_numbers') as first`)

export const lockIdentifiers = statement<{ values: readonly string[] }>()((db, p, { oneOfTexts }) =>
  db
    .selectFrom('identifier')
    .select(['value', 'parcel_id', 'is_tracking_id'])
    .where('value', 'in', oneOfTexts(p.values))
    .orderBy('value')
    .forUpdate(),
)
/**
 * Locks identifiers in the same order as `lockIdentifiers`, so that two transactions cannot deadlock. The order is that of an expression, because
 * the planner may read the whole index of values to save a sort.
 */
const lockIdentifiersOf = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('identifier').select('value').where('parcel_id', 'in', oneOf(p.ids)).orderBy(sql`value || ''`).forUpdate(),
)
const lockParcels = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('parcel').selectAll().where('id', 'in', oneOf(p.ids)).orderBy('id').forNoKeyUpdate(),
)
/**
 * A new parcel's version: the server's time in microseconds. If versions only counted up, a failover that loses commits would let some
 * versions come twice, and replicas would serve outdated cached answers for them.
 */
const firstVersion = sql`(extract(epoch from clock_timestamp()) * 1000000)::bigint`
/** A changed parcel's version. It is above the parcel's last version, even if the server's clock was set back. */
const nextVersion = sql`greatest(parcel.version + 1, ${firstVersion})`

const insertNew = rawStatement<{ ids: readonly number[]; nowMs: number }>()(
  (p) => sql`
    insert into parcel (id, activated_at_ms, entry_count, failures, is_full, version)
    select id, ${p.nowMs}::bigint, 0, 0, 0, ${firstVersion} from unnest(${p.ids}::bigint[]) as u (id)`,
)
/** Fails as a conflict (by a division by zero) if an identifier now belongs to another parcel than it did when it was looked up. */
const saveIdentifiers = rawStatement<Columns<ReturnType<typeof identifierRow>>>()(
  (p) => sql`
    insert into identifier (value, parcel_id, is_tracking_id)
    select * from unnest(${p.value}::text[], ${p.parcelId}::bigint[], ${p.isTrackingId}::smallint[]) as u (value, parcel_id, is_tracking_id) order by value collate "C"
    on conflict (value) do update set
      is_tracking_id = excluded.is_tracking_id / (case when identifier.parcel_id = excluded.parcel_id then 1 else 0 end)`,
)

/** If several identifiers have the same value, the last one counts. */
export function enqueueIdentifiers(session: Session, identifiers: readonly IdentifierState[]): void {
  const rows = new Map(identifiers.map((one) => [one.value, identifierRow(one)]))
  enqueueRows(session, saveIdentifiers, [...rows.values()])
}

/** Reads and writes parcels within one transaction. Reading locks rows until the transaction ends: identifiers first, then parcels. */
export function createPostgresParcels(session: Session): Parcels {
  /** Locks the identifiers before it knows all of them, and begins again if a parcel got one more meanwhile: locks must be taken in one order. */
  async function hold(parcelIds: readonly number[]): Promise<readonly ParcelState[]> {
    if (parcelIds.length === 0) return []
    const locked = new Set((await session.all(lockIdentifiersOf, { ids: parcelIds })).map(({ value }) => value))
    const states = await findParcels(session, parcelIds)
    if ((await loadIdentifiersOf(session, parcelIds)).some(({ value }) => !locked.has(value)))
      throw metAnother('a parcel got another identifier before it was locked')
    return states
  }

  return {
    findIdentifiers: async (values) => (values.length === 0 ? [] : (await session.all(lockIdentifiers, { values })).map(decodeIdentifier)),
    saveIdentifiers: (identifiers) => enqueueIdentifiers(session, identifiers),
    async create(count, nowMs) {
      if (count === 0) return []
      const [taken] = await session.all(takeParcelNumbers, {})
      if (taken === undefined) throw new Error('the sequence of parcels gave no number')
      const ids = Array.from({ length: count }, (_, nth) => taken.first + nth)
      session.enqueueWrite(insertNew, { ids, nowMs })
      return await findParcels(session, ids)
    },
    find: async (parcelId) => (await findParcels(session, [parcelId]))[0] ?? null,
    findMany: async (parcelIds) => (parcelIds.length === 0 ? [] : await findParcels(session, parcelIds)),
    saveMany: (states) => enqueueParcels(session, states),
    save: (state) => enqueueParcels(session, [state]),
    hold,
    async holdOf(values) {
      const found = await lookUpIdentifiers(session, values)
      const ids = [...new Set(found.map(({ parcelId }) => parcelId))]
      const held = await hold(ids)
      const still = new Map((await lookUpIdentifiers(session, values)).map(({ value, parcelId }) => [value, parcelId]))
      if (held.length !== ids.length || still.size !== found.length || found.some(({ value, parcelId }) => still.get(value) !== parcelId))
        throw metAnother('the parcels of identifiers have changed before they were locked')
      return found
    },
    forgetGone: () => undefined,
    forget: () => undefined,
  }
}

/** Reads parcels, and locks them until the transaction ends. */
export async function findParcels(session: Session, ids: readonly number[]): Promise<readonly ParcelState[]> {
  return (await session.all(lockParcels, { ids })).map(decodeParcel)
}

const saveAll = rawStatement<Columns<ReturnType<typeof encodeParcel>>>()(
  (p) => sql`
    insert into parcel ${givenRows(COLUMNS.parcel, p, { version: firstVersion })}
    on conflict (id) do update set ${replaced(COLUMNS.parcel)}, version = ${nextVersion}`,
)

/** Saves parcels and raises their versions. A transaction that changes what apps see of a parcel must also save the parcel. */
export function enqueueParcels(session: Session, states: readonly ParcelState[]): void {
  enqueueRows(session, saveAll, states.map(encodeParcel))
}

/** The most parcels in a query. It is low because each caller waits for the whole query. */
const PARCELS_MAX = 256
/** With two queries at a time, one runs while the next is sent. With more at a time, each query would only serve fewer calls. */
export const QUERIES_AT_ONCE = 2

const versionsOf = rawStatement<{ ids: readonly number[] }>()(
  (p) => sql<{ id: number; version: number }>`select id, version from parcel where id = any(${p.ids}::bigint[])`,
)

type Versions = ReadonlyMap<number, number>

interface Batch {
  readonly parcelIds: Set<number>
  readonly versions: Promise<Versions>
  /** Parcels that are asked for later belong to another query. */
  send(): void
}

/**
 * Makes a function that reads the version of a parcel. One query serves many calls. It is sent only after these calls, so an answer is never
 * older than its call.
 */
export function createParcelVersions(session: Pick<Session, 'all'>): (parcelId: number) => Promise<number | null> {
  const batches: Batch[] = []
  let underWay = 0
  let isPlanned = false

  const read = async (parcelIds: ReadonlySet<number>, sent: Promise<void>): Promise<Versions> => {
    await sent
    const rows = await session.all(versionsOf, { ids: [...parcelIds] })
    return new Map(rows.map(({ id, version }) => [id, version]))
  }

  function open(): Batch {
    const { promise: sent, resolve: send } = Promise.withResolvers<void>()
    const parcelIds = new Set<number>()
    const versions = read(parcelIds, sent)
    const ended = () => {
      underWay -= 1
      plan()
    }
    versions.then(ended, ended)
    const batch = { parcelIds, versions, send }
    batches.push(batch)
    return batch
  }

  function plan(): void {
    if (isPlanned || batches.length === 0 || underWay >= QUERIES_AT_ONCE) return
    isPlanned = true
    setImmediate(() => {
      isPlanned = false
      for (const batch of batches.splice(0, QUERIES_AT_ONCE - underWay)) {
        underWay += 1
        batch.send()
      }
    })
  }

  return async (parcelId) => {
    const last = batches.at(-1)
    const batch = last === undefined || last.parcelIds.size >= PARCELS_MAX ? open() : last
    batch.parcelIds.add(parcelId)
    plan()
    return (await batch.versions).get(parcelId) ?? null
  }
}
