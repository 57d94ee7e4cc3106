import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { LRUCache } from 'lru-cache'
import { decodeContent } from '../../../domain/history/content.ts'
import type { Session } from '../../engine.ts'
import { type Contents, createContents, type StoredContent } from '../../history/contents.ts'
import { rawStatement } from '../raw-statement.ts'

/** How much of what repeats is remembered, in characters of JSON. */
const REMEMBERED_CHARS = 8 * 1024 * 1024

/**
 * What this replica knows of the words that are stored. An id never stands for other words, so another replica cannot make it wrong; only a server that has lost
 * commits gives it to others.
 */
export interface KnownContents {
  readonly byId: LRUCache<number, StoredContent>
  /** Holds committed content only: sightings would keep the id of content that was rolled back, and nothing would stand behind it. */
  readonly ids: LRUCache<string, number>
}

export function createKnownContents(): KnownContents {
  return {
    byId: new LRUCache({ maxSize: REMEMBERED_CHARS, sizeCalculation: ({ json }) => json.length + 1 }),
    ids: new LRUCache({ maxSize: REMEMBERED_CHARS, sizeCalculation: (_id, json) => json.length + 1 }),
  }
}

/** The words within one transaction. */
export interface TransactionContents extends Contents {
  /** Words that were read with their id. */
  note(id: number, json: string): StoredContent
  /** Makes ids for those of the words that have none, and reads them; it is sent at once, and nobody waits for it. */
  intern(jsons: Iterable<string>): void
  /** The transaction is durable: what it learnt is true from now on. */
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
    // Words are read with their ids here (`load-needs`).
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
        // The write before it has failed, and says so.
        () => undefined,
      )
    },
    committed() {
      for (const [json, id] of own) known.ids.set(json, id)
    },
    forget: () => own.clear(),
  }
}

/** What words are found by in the table. */
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
