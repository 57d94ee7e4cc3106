import { createHash } from 'node:crypto'
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
export interface Contents {
  /** Returns the id of a content; undefined: it is not cached. */
  recall(json: string): number | undefined
  /** Finds the id of a content. Inserts the content if it is new. */
  idOf(json: string): Promise<number>
  /** Returns the content with an id; undefined: it is not cached. */
  recallContent(id: number): StoredContent | undefined
  read(session: Session, ids: readonly number[]): Promise<ReadonlyMap<number, StoredContent>>
  /** Removes the id of a content from the cache, so that it is read again. */
  forgetId(json: string): void
  /** Clears the cache. Call it after a rollback, because ids that the transaction assigned are invalid. */
  forget(): void
}

export function createContents(session: Session): Contents {
  const ids = new LRUCache<string, number>({ maxSize: REMEMBERED_CHARS, sizeCalculation: (_id, json) => json.length + 1 })
  const known = new LRUCache<number, StoredContent>({
    maxSize: REMEMBERED_CHARS,
    sizeCalculation: ({ json }) => json.length + 1,
  })
  return {
    recall: (json) => ids.get(json),
    async idOf(json) {
      const digest = createHash('sha256').update(json).digest().subarray(0, 16)
      const [row] = await session.all(findByDigest, { digest })
      const [made] = row === undefined ? await session.all(insertContent, { digest, json }) : [row]
      if (made === undefined) throw new Error('the insert of a content returned no id')
      ids.set(json, made.id)
      return made.id
    },
    recallContent: (id) => known.get(id),
    async read(through, ids) {
      const read = new Map<number, StoredContent>()
      for (const { id, json } of await through.all(findByIds, { ids })) {
        const content = { json, content: decodeContent(json) }
        known.set(id, content)
        read.set(id, content)
      }
      return read
    },
    forgetId: (json) => void ids.delete(json),
    forget() {
      ids.clear()
      known.clear()
    },
  }
}
