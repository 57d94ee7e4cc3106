import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { LRUCache } from 'lru-cache'
import { decodeContent } from '../../../core/domain/history/content.ts'
import type { Session } from '../../../core/store/engine.ts'
import { type Contents, createContents, type StoredContent } from '../../../core/store/history/contents.ts'
import { createStandingWatch, type Standing, standingColumns } from '../counter.ts'
import { rawStatement } from '../postgres-dialect.ts'

/** The size of each cache, in characters of JSON. */
const REMEMBERED_CHARS = 8 * 1024 * 1024

/**
 * The contents that this replica has cached. Drop them after an erasure, because it removes contents. Drop them also when the server has lost
 * commits, because it may assign the lost ids to other contents.
 */
export type KnownContents = ReturnType<typeof createKnownContents>

export function createKnownContents() {
  const byId = new LRUCache<number, StoredContent>({ maxSize: REMEMBERED_CHARS, sizeCalculation: ({ json }) => json.length + 1 })
  const ids = new LRUCache<string, number>({ maxSize: REMEMBERED_CHARS, sizeCalculation: (_id, json) => json.length + 1 })
  return {
    byId,
    /** Has committed contents only. Otherwise a sighting could be stored with the id of a content whose insert was rolled back. */
    ids,
    forget() {
      byId.clear()
      ids.clear()
    },
  }
}

export interface TransactionContents extends Contents {
  /** Caches a content that was read with its id. */
  note(id: number, json: string): StoredContent
  /** Inserts the contents that are new, and reads the ids of all. It sends the statements, but does not wait for their answers. */
  intern(jsons: Iterable<string>): void
  /** Caches the transaction's ids for later transactions. Call it once the transaction is durable. */
  committed(): void
}

export function createTransactionContents(session: Session, known: KnownContents): TransactionContents {
  const own = new Map<string, number>()
  const plain = createContents(session)
  const note = (id: number, json: string): StoredContent => {
    const remembered = known.byId.get(id)
    const content = remembered?.json === json ? remembered : { json, content: decodeContent(json) }
    known.byId.set(id, content)
    own.set(json, id)
    return content
  }
  return {
    note,
    recall: (json) => known.ids.get(json) ?? own.get(json),
    async idOf(json) {
      const id = await plain.idOf(json)
      own.set(json, id)
      return id
    },
    // Sightings are read together with their contents (`load-needs`), so nobody needs a content by its id.
    recallContent: () => undefined,
    async read(through, ids) {
      const read = await plain.read(through, ids)
      for (const [id, { json }] of read) note(id, json)
      return read
    },
    intern(jsons) {
      const byDigest = new Map<string, string>()
      for (const json of jsons) if (known.ids.get(json) === undefined && !own.has(json)) byDigest.set(digestOf(json).toString('hex'), json)
      if (byDigest.size === 0) return
      const hex = [...byDigest.keys()].sort()
      const digests = hex.map((digest) => Buffer.from(digest, 'hex'))
      session.enqueueWrite(insertAll, { digests, jsons: hex.map((digest) => byDigest.get(digest) ?? '') })
      session.all(findAll, { digests }).then(
        (rows) => {
          for (const { id, digest } of rows) own.set(byDigest.get(digest) ?? '', id)
        },
        // Ignore the failure: the read fails only if the insert above has failed, and the insert reports that.
        () => undefined,
      )
    },
    committed() {
      for (const [json, id] of own) known.ids.set(json, id)
    },
    forgetId(json) {
      known.ids.delete(json)
      own.delete(json)
    },
    forget: () => own.clear(),
  }
}

export function digestOf(json: string): Buffer {
  return createHash('sha256').update(json).digest().subarray(0, 16)
}

const insertAll = rawStatement<{ digests: readonly Uint8Array[]; jsons: readonly string[] }>()(
  (p) =>
    sql`insert into content (digest, json) select * from unnest(${p.digests}::bytea[], ${p.jsons}::text[]) on conflict (digest) do nothing`,
)
const findAll = rawStatement<{ digests: readonly Uint8Array[] }>()(
  (p) =>
    sql<{ id: number; digest: string }>`select id, encode(digest, 'hex') as digest from content where digest = any(${p.digests}::bytea[])`,
)

const readStanding = rawStatement()(() => sql<Standing>`select ${standingColumns} from counter where name = 'sequence'`)

/**
 * Makes the cache of contents for reads in a snapshot. A server that has lost commits may assign a cached id to another content. So each
 * snapshot first checks whether the server is another one or has lost commits. The check is sent just ahead of the other queries, so it costs
 * no extra wait.
 */
export function createReadContents(session: Session): (snapshot: Session) => Contents {
  const watch = createStandingWatch()
  let remembered = createContents(session)
  return (snapshot) => {
    const isBack = watch.asking()
    // Answers come in the order of the queries, so the answer to this check comes before the first sighting.
    let contents: Contents | null = null
    snapshot.all(readStanding, {}).then(
      ([found]) => {
        if (found !== undefined && isBack(found)) remembered = createContents(session)
        contents = remembered
      },
      // Ignore the failure: the other queries of the snapshot fail too, and report it.
      () => undefined,
    )
    const nothing = createContents(session)
    return {
      ...nothing,
      recallContent: (id) => contents?.recallContent(id),
      read: (through, ids) => (contents ?? nothing).read(through, ids),
    }
  }
}
