import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { ParcelState } from '../../core/domain/history/parcel-state.ts'
import { decodeAnswer, decodeListed, encodeAnswerHead } from '../../core/store/codec.ts'
import type { Session } from '../../core/store/engine.ts'
import { markContents } from '../../core/store/history/contents.ts'
import { decodeIdentifier, loadIdentifiersOf } from '../../core/store/history/parcels.ts'
import { statement } from '../../core/store/statement.ts'
import type { Tables } from '../../core/store/tables.ts'
import type { WriteTx } from '../../core/store/write-store.ts'
import type { StoredAnswer, StoredPush } from './evidence.rules.ts'
import type { ParcelCorrection, StoredParcel } from './rebuild-parcel.rules.ts'

const parcelsAfter = statement<{ after: number; limit: number }>()((db, p) =>
  db
    .selectFrom('parcel')
    .select((of) => [
      'id',
      of
        .selectFrom('inbox')
        .select((row) => row.fn.countAll<number>().as('count'))
        .whereRef('inbox.parcel_id', '=', 'parcel.id')
        .as('pushes'),
      of
        .selectFrom('answer')
        .select((row) => row.fn.countAll<number>().as('count'))
        .whereRef('answer.parcel_id', '=', 'parcel.id')
        .as('answers'),
    ])
    .where('id', '>', p.after)
    .orderBy('id')
    .limit(p.limit),
)

const PUSH_COLUMNS = ['parcel_id', 'digest', 'content_encoding', 'received_at_ms', 'body'] as const

const pushesOf = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('inbox').select(PUSH_COLUMNS).where('parcel_id', 'in', oneOf(p.ids)),
)
const pushesAfter = statement<{ parcelId: number; after: Uint8Array; limit: number }>()((db, p) =>
  db
    .selectFrom('inbox')
    .select(PUSH_COLUMNS)
    .where('parcel_id', '=', p.parcelId)
    .where('digest', '>', p.after)
    .orderBy('digest')
    .limit(p.limit),
)
const answersOf = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .selectFrom('answer')
    .select(['parcel_id', 'language', 'digest', 'asked_at_ms', 'entry_count', 'is_flawed', 'head', 'decides_order', 'body', 'listed'])
    .where('parcel_id', 'in', oneOf(p.ids)),
)

const dropSighting = statement<{ parcelId: number; atMs: number; sequence: number }>()((db, p) =>
  db.deleteFrom('sighting').where('parcel_id', '=', p.parcelId).where('at_ms', '=', p.atMs).where('sequence', '=', p.sequence),
)
const correctAnswer = statement<{
  parcelId: number
  language: string
  digest: Uint8Array
  entryCount: number
  isFlawed: number
  decidesOrder: number
  head: string
}>()((db, p) =>
  db
    .updateTable('answer')
    .set({ entry_count: p.entryCount, is_flawed: p.isFlawed, decides_order: p.decidesOrder, head: p.head })
    .where('parcel_id', '=', p.parcelId)
    .where('language', '=', p.language)
    .where('digest', '=', p.digest),
)

const lastParcel = statement()((db) => db.selectFrom('parcel').select('id').orderBy('id', 'desc').limit(sql.lit(1)))

const contentOf = statement<{ digest: Uint8Array }>()((db, p) =>
  db.selectFrom('content').select(['id', 'json']).where('digest', '=', p.digest),
)
const renameContent = statement<{ id: number; digest: Uint8Array }>()((db, p) =>
  db.updateTable('content').set({ digest: p.digest }).where('id', '=', p.id),
)

/** How many rows a rebuild has to read for a parcel. */
export interface RebuildableParcel {
  readonly parcelId: number
  readonly pushes: number
  readonly answers: number
}

/** Lists parcels with ids above `after`, ascending. */
export async function listRebuildable(
  session: Session,
  page: { readonly after: number; readonly limit: number },
): Promise<readonly RebuildableParcel[]> {
  const rows = await session.all(parcelsAfter, page)
  return rows.map(({ id, pushes, answers }) => ({ parcelId: id, pushes: pushes ?? 0, answers: answers ?? 0 }))
}

/** Returns the id of the newest parcel; 0: there is none. */
export async function newestParcelId(session: Session): Promise<number> {
  const [row] = await session.all(lastParcel, {})
  return row?.id ?? 0
}

interface HoldingTx extends Session {
  holdParcels(parcelIds: readonly number[]): Promise<readonly ParcelState[]>
  loadSightings(parcelIds: readonly number[]): Promise<ReadonlyMap<number, StoredParcel['sightings']>>
}

/** Loads everything that is stored about these parcels, and locks them until the transaction ends. Leaves out parcels that do not exist. */
export async function loadStoredParcels(tx: HoldingTx, parcelIds: readonly number[]): Promise<readonly StoredParcel[]> {
  const states = await tx.holdParcels(parcelIds)
  const ids = states.map(({ parcelId }) => parcelId)
  const [sightings, identifiers, answers] = await Promise.all([
    tx.loadSightings(ids),
    loadIdentifiersOf(tx, ids),
    tx.all(answersOf, { ids }),
  ])
  const named = Map.groupBy(identifiers, (row) => row.parcel_id)
  const answered = Map.groupBy(answers, (row) => row.parcel_id)
  return states.map((state) => ({
    state,
    identifiers: (named.get(state.parcelId) ?? []).map(decodeIdentifier),
    sightings: sightings.get(state.parcelId) ?? [],
    answers: (answered.get(state.parcelId) ?? []).map(decodeStoredAnswer),
  }))
}

export async function listStoredPushes(session: Session, parcelIds: readonly number[]): Promise<readonly StoredPush[]> {
  return (await session.all(pushesOf, { ids: parcelIds })).map(decodePush)
}

/** Lists a page of a parcel's recorded pushes, in the order of their digests; `after` '': from the first. */
export async function pagePushes(
  session: Session,
  { parcelId, after, limit }: { readonly parcelId: number; readonly after: string; readonly limit: number },
): Promise<readonly StoredPush[]> {
  return (await session.all(pushesAfter, { parcelId, after: Buffer.from(after, 'latin1'), limit })).map(decodePush)
}

/** Deletes the rows that corrections replace, and corrects answers. `applyChanges` writes the new rows, in the same transaction. */
export async function correctParcels(
  session: Session & Pick<WriteTx, 'forgetContents'>,
  corrections: readonly ParcelCorrection[],
): Promise<void> {
  for (const { state, dropped, answers } of corrections) {
    const { parcelId } = state
    for (const { sighting, sequence } of dropped) session.enqueueWrite(dropSighting, { parcelId, atMs: sighting.instant.atMs, sequence })
    for (const { answer, decidesOrder } of answers) {
      const { language, digest, askedAtMs: _fact, entryCount, flawed, ...head } = answer
      session.enqueueWrite(correctAnswer, {
        parcelId,
        language,
        digest: Buffer.from(digest, 'hex'),
        entryCount,
        isFlawed: flawed ? 1 : 0,
        decidesOrder: decidesOrder ? 1 : 0,
        head: encodeAnswerHead(head),
      })
    }
  }
  const jsons = new Set(corrections.flatMap(({ saved }) => saved.map(({ content }) => content)))
  await Promise.all([...jsons].map((json) => disownContent(session, json)))
  session.forgetContents(jsons)
  await markDropped(session, new Set(corrections.flatMap(({ dropped }) => dropped.map(({ content }) => content))))
}

/**
 * If a damaged row has the digest of this content but holds another content, gives that row a new digest. Then this content can be stored
 * in a row of its own. The damaged row keeps its content and id, because readers cache contents by id.
 */
async function disownContent(session: Session, json: string): Promise<void> {
  const [row] = await session.all(contentOf, { digest: digestOf(json) })
  if (row === undefined || row.json === json) return
  const [twin] = await session.all(contentOf, { digest: digestOf(row.json) })
  await session.run(renameContent, { id: row.id, digest: digestOf(twin === undefined ? row.json : `${row.id} ${row.json}`) })
}

/** Marks the contents of dropped sightings that no other sighting uses. A retention pass deletes them later. */
async function markDropped(session: Session, jsons: ReadonlySet<string>): Promise<void> {
  const found = await Promise.all([...jsons].map((json) => session.all(contentOf, { digest: digestOf(json) })))
  markContents(
    session,
    found.flat().map(({ id }) => id),
  )
}

function digestOf(text: string): Uint8Array {
  return createHash('sha256').update(text).digest().subarray(0, 16)
}

function decodePush(row: Pick<Tables['inbox'], 'parcel_id' | 'digest' | 'content_encoding' | 'received_at_ms' | 'body'>): StoredPush {
  return {
    parcelId: row.parcel_id,
    digest: Buffer.from(row.digest).toString('latin1'),
    contentEncoding: row.content_encoding,
    receivedAtMs: row.received_at_ms,
    body: row.body,
  }
}

function decodeStoredAnswer(row: Tables['answer']): StoredAnswer {
  return { answer: decodeAnswer(row), decidesOrder: row.decides_order === 1, body: row.body, listed: decodeListed(row.listed) }
}
