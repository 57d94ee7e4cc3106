import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { ParcelState } from '../../domain/history/parcel-state.ts'
import type { StoredAnswer, StoredPush } from '../../domain/history/rebuild/evidence.ts'
import type { StoredParcel } from '../../domain/history/rebuild/rebuild-parcel.ts'
import { decodeAnswer, decodeListed, encodeAnswerHead } from '../codec.ts'
import type { Session } from '../engine.ts'
import type { Tables } from '../schema.ts'
import { statement } from '../statement.ts'
import type { Contents } from './contents.ts'
import type { RebuildTx } from './history-store.ts'
import { decodeIdentifier, loadIdentifiersOf } from './parcels.ts'
import { markContents } from './unused-contents.ts'

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

interface RebuildParts {
  readonly session: Session
  readonly contents: Pick<Contents, 'forgetId'>
  readonly parcels: {
    /** Keeps other transactions from changing these parcels until this one ends. Returns the parcels that exist. */
    hold(parcelIds: readonly number[]): Promise<readonly ParcelState[]>
  }
}

/** Makes the methods of a transaction that rebuilds parcels. Both engines use them. */
export function rebuildVerbs({ session, contents, parcels }: RebuildParts, loadSightings: LoadSightings): RebuildTx {
  return {
    async listRebuildable(page) {
      const rows = await session.all(parcelsAfter, page)
      return rows.map(({ id, pushes, answers }) => ({ parcelId: id, pushes: pushes ?? 0, answers: answers ?? 0 }))
    },
    async lastParcelId() {
      const [row] = await session.all(lastParcel, {})
      return row?.id ?? 0
    },
    async loadStoredParcels(parcelIds) {
      const states = await parcels.hold(parcelIds)
      const ids = states.map(({ parcelId }) => parcelId)
      const [sightings, identifiers, answers] = await Promise.all([
        loadSightings(ids),
        loadIdentifiersOf(session, ids),
        session.all(answersOf, { ids }),
      ])
      const named = Map.groupBy(identifiers, (row) => row.parcel_id)
      const answered = Map.groupBy(answers, (row) => row.parcel_id)
      return states.map((state): StoredParcel => {
        const { parcelId } = state
        return {
          state,
          identifiers: (named.get(parcelId) ?? []).map(decodeIdentifier),
          sightings: sightings.get(parcelId) ?? [],
          answers: (answered.get(parcelId) ?? []).map(decodeStoredAnswer),
        }
      })
    },
    async listStoredPushes(parcelIds) {
      return (await session.all(pushesOf, { ids: parcelIds })).map(decodePush)
    },
    async pagePushes({ parcelId, after, limit }) {
      return (await session.all(pushesAfter, { parcelId, after: Buffer.from(after, 'latin1'), limit })).map(decodePush)
    },
    async correctParcels(corrections) {
      for (const { state, dropped, answers } of corrections) {
        const { parcelId } = state
        for (const { sighting, sequence } of dropped)
          session.enqueueWrite(dropSighting, { parcelId, atMs: sighting.instant.atMs, sequence })
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
      for (const json of jsons) contents.forgetId(json)
      await markDropped(session, new Set(corrections.flatMap(({ dropped }) => dropped.map(({ content }) => content))))
    },
  }
}

type LoadSightings = (parcelIds: readonly number[]) => Promise<ReadonlyMap<number, StoredParcel['sightings']>>

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
