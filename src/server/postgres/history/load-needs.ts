import { sql } from 'kysely'
import type { KeptSighting } from '../../../core/domain/history/sightings.ts'
import { type Loaded, type Needs, pushKey } from '../../../core/domain/history/snapshot.ts'
import type { Session } from '../../../core/store/engine.ts'
import { loadParcelFacts } from '../../../core/store/history/parcel-view.ts'
import { decodeSighting } from '../../../core/store/history/sightings.ts'
import { digestBytes } from '../../../core/store/ingest/inbox.ts'
import type { Tables } from '../../../core/store/schema.ts'
import { rawStatement } from '../raw-statement.ts'
import type { TransactionContents } from './postgres-contents.ts'
import { findParcels } from './postgres-parcels.ts'

export interface BatchSource {
  readonly session: Session
  readonly contents: TransactionContents
}

/** See `WriteTx.loadNeeds`. Locks the parcels before it reads them, so that they stay as read until the transaction ends. */
export async function loadNeeds(source: BatchSource, needs: Needs): Promise<Loaded> {
  const { session } = source
  const [parcels, pushes, seconds, whole, facts] = await Promise.all([
    needs.parcels.length === 0 ? [] : findParcels(session, needs.parcels),
    findTwins(session, needs.pushes),
    readSeconds(source, needs.seconds),
    readWhole(source, needs.whole),
    loadParcelFacts(session, needs),
  ])
  return { needs, parcels, pushes, seconds, whole, ...facts }
}

const twins = rawStatement<{ parcelIds: readonly number[]; digests: readonly Uint8Array[] }>()(
  (p) => sql<{ id: number; parcel_id: number; nth: number }>`
    select inbox.id, inbox.parcel_id, u.nth from unnest(${p.parcelIds}::bigint[], ${p.digests}::bytea[]) with ordinality as u (parcel_id, digest, nth)
    join inbox on inbox.parcel_id = u.parcel_id and inbox.digest = u.digest`,
)

async function findTwins(session: Session, pushes: Needs['pushes']): Promise<ReadonlyMap<string, number>> {
  if (pushes.length === 0) return new Map()
  const digests = pushes.map(({ digest }) => digestBytes(digest))
  const found = await session.all(twins, { parcelIds: pushes.map(({ parcelId }) => parcelId), digests })
  return new Map(found.map(({ id, parcel_id: parcelId, nth }) => [pushKey(parcelId, pushes[nth - 1]?.digest ?? ''), id]))
}

type SightingRow = Tables['sighting'] & { readonly json: string }

/** Reads a content by a subquery for each row. For a join, the planner might read all contents. */
const json = sql`(select json from content where content.id = sighting.content_id) as json`

const ofSeconds = rawStatement<{ parcelIds: readonly number[]; fromMs: readonly number[] }>()(
  (p) => sql<SightingRow>`
    select sighting.*, ${json} from unnest(${p.parcelIds}::bigint[], ${p.fromMs}::bigint[]) as u (parcel_id, from_ms)
    join sighting on sighting.parcel_id = u.parcel_id and sighting.at_ms >= u.from_ms and sighting.at_ms < u.from_ms + 1000`,
)
const ofParcels = rawStatement<{ ids: readonly number[] }>()(
  (p) => sql<SightingRow>`select sighting.*, ${json} from sighting where sighting.parcel_id = any(${p.ids}::bigint[])`,
)

type ByParcel = ReadonlyMap<number, readonly KeptSighting[]>

async function readSeconds(source: BatchSource, seconds: Needs['seconds']): Promise<ByParcel> {
  if (seconds.length === 0) return new Map()
  const columns = { parcelIds: seconds.map(({ parcelId }) => parcelId), fromMs: seconds.map(({ second }) => second * 1000) }
  return byParcel(source, await source.session.all(ofSeconds, columns))
}

/** Reads all sightings of parcels. A parcel without sightings is absent. */
export async function readWhole(source: BatchSource, parcelIds: readonly number[]): Promise<ByParcel> {
  if (parcelIds.length === 0) return new Map()
  return byParcel(source, await source.session.all(ofParcels, { ids: parcelIds }))
}

function byParcel({ contents }: BatchSource, rows: readonly SightingRow[]): ByParcel {
  const found = new Map<number, KeptSighting[]>()
  for (const row of rows) {
    const sighting = decodeSighting(row, contents.note(row.content_id, row.json))
    const others = found.get(row.parcel_id)
    if (others === undefined) found.set(row.parcel_id, [sighting])
    else others.push(sighting)
  }
  return found
}
