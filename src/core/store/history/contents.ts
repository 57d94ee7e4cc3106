import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { LRUCache } from 'lru-cache'
import { type Content, decodeContent } from '../../domain/history/content.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'

/** The largest size of each cache, in characters of JSON. */
const REMEMBERED_CHARS = 8 * 1024 * 1024

const findByDigest = statement<{ digest: Uint8Array }>()((db, p) => db.selectFrom('content').select('id').where('digest', '=', p.digest))
const insertContent = statement<{ digest: Uint8Array; json: string }>()((db, p) =>
  db.insertInto('content').values({ digest: p.digest, json: p.json }).returning('id'),
)
const findByIds = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('content').select(['id', 'json']).where('id', 'in', oneOf(p.ids)),
)

export interface StoredContent {
  readonly content: Content
  readonly json: string
}

/** The content of sightings (everything but their time). Equal contents are stored once for all parcels. */
export type Contents = ReturnType<typeof createContents>

export function createContents(session: Session) {
  const ids = new LRUCache<string, number>({ maxSize: REMEMBERED_CHARS, sizeCalculation: (_id, json) => json.length + 1 })
  const known = new LRUCache<number, StoredContent>({
    maxSize: REMEMBERED_CHARS,
    sizeCalculation: ({ json }) => json.length + 1,
  })
  return {
    /** Returns the id of a content; undefined: it is not cached. */
    recall: (json: string) => ids.get(json),
    /** Finds the id of a content. Inserts the content if it is new. */
    async idOf(json: string) {
      const digest = createHash('sha256').update(json).digest().subarray(0, 16)
      const [row] = await session.all(findByDigest, { digest })
      const [made] = row === undefined ? await session.all(insertContent, { digest, json }) : [row]
      if (made === undefined) throw new Error('the insert of a content returned no id')
      ids.set(json, made.id)
      return made.id
    },
    /** Returns the content with an id; undefined: it is not cached. */
    recallContent: (id: number) => known.get(id),
    async read(through: Session, ids: readonly number[]): Promise<ReadonlyMap<number, StoredContent>> {
      const read = new Map<number, StoredContent>()
      for (const { id, json } of await through.all(findByIds, { ids })) {
        const content = { json, content: decodeContent(json) }
        known.set(id, content)
        read.set(id, content)
      }
      return read
    },
    /** Removes the id of a content from the cache, so that it is read again. */
    forgetId: (json: string) => void ids.delete(json),
    /** Clears the cache. Call it after a rollback, because ids that the transaction assigned are invalid. */
    forget() {
      ids.clear()
      known.clear()
    },
  }
}

/** A text that no sighting used when it was marked. `isUsed`: a sighting uses the text again. */
export interface UnusedText {
  readonly id: number
  readonly json: string
  readonly isUsed: boolean
}

type Ids = { readonly ids: readonly number[] }

/** Not `distinct`: to save a sort, the planner may read the whole index of contents. */
const contentsOf = statement<Ids>()((db, p, { oneOf }) =>
  db.selectFrom('sighting').select('content_id').where('parcel_id', 'in', oneOf(p.ids)),
)
const unusedAmong = statement<Ids>()((db, p, { rowsOf }) =>
  db
    .selectFrom(rowsOf(p.ids).as('one'))
    .select('one.value as id')
    .where((of) => of.not(of.exists(of.selectFrom('sighting').select('content_id').whereRef('sighting.content_id', '=', 'one.value')))),
)
const removeUnused = statement<Ids>()((db, p, { oneOf }) =>
  db
    .deleteFrom('content')
    .where('id', 'in', oneOf(p.ids))
    .where((of) => of.not(of.exists(of.selectFrom('sighting').select('content_id').whereRef('sighting.content_id', '=', 'content.id')))),
)
const markUnused = statement<Ids>()((db, p, { oneOf }) =>
  db
    .updateTable('content')
    .set({ is_unused: 1 })
    .where('id', 'in', oneOf(p.ids))
    .where((of) => of.not(of.exists(of.selectFrom('sighting').select('content_id').whereRef('sighting.content_id', '=', 'content.id')))),
)
const unmark = statement<Ids>()((db, p, { oneOf }) => db.updateTable('content').set({ is_unused: 0 }).where('id', 'in', oneOf(p.ids)))
const marked = statement<{ after: number; limit: number }>()((db, p) =>
  db
    .selectFrom('content')
    .select(['id', 'json'])
    .select((of) =>
      of
        .selectFrom('sighting')
        .select('sighting.parcel_id')
        .whereRef('sighting.content_id', '=', 'content.id')
        .limit(sql.lit(1))
        .as('used_by'),
    )
    .where('is_unused', '=', sql.lit(1))
    .where('id', '>', p.after)
    .orderBy('id')
    .limit(p.limit),
)

/** Lists the ids of the contents that the sightings of these parcels use. */
export async function contentsUsedBy(session: Session, parcelIds: readonly number[]): Promise<readonly number[]> {
  return [...new Set((await session.all(contentsOf, { ids: parcelIds })).map((row) => row.content_id))]
}

/** Lists the contents among these that no sighting uses. */
export async function listUnused(session: Session, ids: readonly number[]): Promise<readonly number[]> {
  return (await session.all(unusedAmong, { ids })).map(({ id }) => id)
}

/** Deletes the contents among these that no sighting uses. */
export function removeContents(session: Session, ids: readonly number[]): void {
  if (ids.length > 0) session.enqueueWrite(removeUnused, { ids })
}

/** Marks the contents among these that no sighting uses. A retention pass deletes them if they are still unused then. */
export function markContents(session: Session, ids: readonly number[]): void {
  if (ids.length > 0) session.enqueueWrite(markUnused, { ids })
}

function unmarkContents(session: Session, ids: readonly number[]): void {
  if (ids.length > 0) session.enqueueWrite(unmark, { ids })
}

/** Deletes marked contents that no sighting uses, and unmarks those that one uses again. */
export function settleMarked(
  session: Session,
  { unused, used }: Readonly<Record<'unused' | 'used', readonly { readonly id: number }[]>>,
): void {
  const idsOf = (contents: readonly { readonly id: number }[]) => contents.map(({ id }) => id)
  removeContents(session, idsOf(unused))
  unmarkContents(session, idsOf(used))
}

/** Lists marked contents in the order of their ids. `isUsed`: a sighting uses the content again. */
export async function listMarked(
  session: Session,
  page: { readonly after: number; readonly limit: number },
): Promise<readonly UnusedText[]> {
  const rows = await session.all(marked, page)
  return rows.map(({ id, json, used_by: usedBy }) => ({ id, json, isUsed: usedBy !== null }))
}
