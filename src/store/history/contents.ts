import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type Content, decodeContent } from '../../domain/history/content.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'

/** How much of what repeats is kept at hand, in characters of JSON. */
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

/** What sightings say apart from their time, each wording stored once for all the parcels it is said of. */
export interface Contents {
  /** Its id, if that is at hand without a look into the store. */
  recall(json: string): number | undefined
  /** Its id in the store, made now if it has none. */
  idOf(json: string): Promise<number>
  /** What the store has under an id, if that is at hand. */
  recallContent(id: number): StoredContent | undefined
  /** What the store has under some ids. */
  read(session: Session, ids: readonly number[]): Promise<ReadonlyMap<number, StoredContent>>
  /** After a transaction was undone, ids given in it are worth nothing. */
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
      if (made === undefined) throw new Error('a content was inserted and has no id')
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
    forget() {
      ids.clear()
      known.clear()
    },
  }
}
