import { createHash } from 'node:crypto'
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** How many contents or parcels one step handles. */
const AT_ONCE = 1000
/** How many answers to keep per language, besides those that decide something. */
const ANSWERS_MAX = 8

/**
 * Moves unknown members out of a sighting's content into a column. A carrier may change them at every poll, and each change made a new sighting
 * of every entry. Of listings that are now equal the last asked stays; of the answers, which multiplied in the same way, a few.
 */
export const listings: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('sighting').addColumn('extra', 'text').execute()
    await trimAnswers(db)
    await sql`CREATE TEMP TABLE stripped (old_id INTEGER PRIMARY KEY, new_id INTEGER NOT NULL, extra TEXT NOT NULL)`.execute(db)
    await sql`CREATE TEMP TABLE relisted (parcel_id INTEGER, old INTEGER, new INTEGER, PRIMARY KEY (parcel_id, old))`.execute(db)
    await stripContents(db)
    await relist(db)
    await moveSightings(db)
    await sql`DELETE FROM content WHERE id IN (SELECT old_id FROM stripped)`.execute(db)
    await sql`DROP TABLE stripped`.execute(db)
    await sql`DROP TABLE relisted`.execute(db)
  },
}

async function trimAnswers(db: Kysely<unknown>): Promise<void> {
  await sql`
    DELETE FROM answer WHERE rowid IN (
      SELECT rowid FROM (
        SELECT rowid, decides_order, json_extract(head, '$.distributionType') IS NULL AS says_nothing,
          row_number() OVER (PARTITION BY parcel_id, language ORDER BY asked_at_ms DESC, digest DESC) AS nth,
          row_number() OVER (
            PARTITION BY parcel_id, language, json_extract(head, '$.distributionType') IS NULL ORDER BY asked_at_ms DESC, digest DESC
          ) AS nth_of_such
        FROM answer
      )
      WHERE nth > ${ANSWERS_MAX} AND decides_order = 0 AND (says_nothing OR nth_of_such > 1)
    )`.execute(db)
}

interface StoredContent {
  readonly id: number
  readonly json: string
}

/** Maps each content with unknown members to the same content without them. */
async function stripContents(db: Kysely<unknown>): Promise<void> {
  let after = 0
  for (;;) {
    // The pattern cannot match inside a string, where quotes are escaped.
    const { rows } = await sql<StoredContent>`
      SELECT id, json FROM content WHERE id > ${after} AND json NOT LIKE '%"extra":[],"location":%' ORDER BY id LIMIT ${AT_ONCE}`.execute(
      db,
    )
    const last = rows.at(-1)
    if (last === undefined) return
    const chunk = JSON.stringify(rows.map(strip))
    await sql`
      INSERT INTO content (digest, json) SELECT unhex(value ->> 1), value ->> 2 FROM json_each(${chunk}) WHERE true
      ON CONFLICT (digest) DO NOTHING`.execute(db)
    await sql`
      INSERT INTO stripped SELECT value ->> 0, (SELECT id FROM content WHERE digest = unhex(value ->> 1)), value ->> 3
      FROM json_each(${chunk})`.execute(db)
    after = last.id
  }
}

function strip({ id, json }: StoredContent): readonly [id: number, digest: string, json: string, extra: string] {
  const content: unknown = JSON.parse(json)
  if (typeof content !== 'object' || content === null || !('extra' in content))
    throw new Error(`content ${id} is not the content of a sighting`)
  const bare = JSON.stringify({ ...content, extra: [] })
  return [id, createHash('sha256').update(bare).digest('hex').slice(0, 32), bare, JSON.stringify(content.extra)]
}

interface Listed {
  readonly parcel_id: number
  readonly listing: number
  readonly ordinal: number
  readonly at_ms: number
  readonly has_ms: number
  readonly json: string
}

/** Renumbers listings by their content without unknown members. */
async function relist(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ parcel_id: number }>`SELECT DISTINCT parcel_id FROM sighting WHERE listing != 0`.execute(db)
  for (let from = 0; from < rows.length; from += AT_ONCE) {
    const ids = JSON.stringify(rows.slice(from, from + AT_ONCE).map((row) => row.parcel_id))
    const listed = await sql<Listed>`
      SELECT parcel_id, listing, ordinal, at_ms, has_ms, content.json FROM sighting
      LEFT JOIN stripped ON old_id = content_id JOIN content ON content.id = coalesce(new_id, content_id)
      WHERE parcel_id IN (SELECT value FROM json_each(${ids})) AND listing != 0`.execute(db)
    const renumbered = [...Map.groupBy(listed.rows, (row) => `${row.parcel_id}/${row.listing}`).values()].map((together) => {
      const [{ parcel_id, listing } = { parcel_id: 0, listing: 0 }] = together
      return [parcel_id, listing, numberOf(together)]
    })
    await sql`
      INSERT INTO relisted SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(${JSON.stringify(renumbered)})`.execute(db)
  }
}

function numberOf(together: readonly Listed[]): number {
  const lines = together.map(({ ordinal, at_ms, has_ms, json }) => {
    const text = new Date(at_ms).toISOString()
    const written = has_ms === 1 ? text : text.replace('.000Z', 'Z')
    return `${ordinal} {"content":${json},"eventTimestamp":${JSON.stringify(written)}}`
  })
  return createHash('sha256').update(lines.sort().join('\n')).digest().readUIntBE(0, 6) || 1
}

/** Gives sightings their new contents and listings. Of equal ones the last asked stays, with the sequence of the first. */
async function moveSightings(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TEMP TABLE moved AS
    SELECT sighting.parcel_id, at_ms, has_ms, coalesce(new_id, content_id) AS content_id, coalesce(new, listing) AS listing, ordinal,
      asked_at_ms, sequence, told, stripped.extra
    FROM sighting LEFT JOIN stripped ON old_id = content_id
    LEFT JOIN relisted ON relisted.parcel_id = sighting.parcel_id AND old = listing
    WHERE new_id IS NOT NULL OR new IS NOT NULL`.execute(db)
  await sql`DELETE FROM sighting WHERE listing != 0 OR content_id IN (SELECT old_id FROM stripped)`.execute(db)
  await sql`
    INSERT INTO sighting (parcel_id, at_ms, has_ms, content_id, listing, ordinal, asked_at_ms, sequence, told, extra)
    SELECT * FROM moved WHERE true
    ORDER BY parcel_id, at_ms, has_ms, content_id, listing, ordinal, asked_at_ms, extra IS NULL, extra
    ON CONFLICT (parcel_id, at_ms, has_ms, content_id, listing, ordinal) DO UPDATE SET
      asked_at_ms = max(sighting.asked_at_ms, excluded.asked_at_ms),
      extra = CASE WHEN excluded.asked_at_ms < sighting.asked_at_ms OR (excluded.asked_at_ms = sighting.asked_at_ms AND sighting.extra IS NULL)
        THEN sighting.extra ELSE excluded.extra END,
      sequence = min(sighting.sequence, excluded.sequence),
      told = CASE
        WHEN sighting.told = 0 THEN excluded.told
        WHEN excluded.told = 0 THEN sighting.told
        WHEN sighting.told = 1 OR excluded.told = 1 THEN 1
        WHEN (sighting.told < 0) = (excluded.told < 0) THEN min(sighting.told, excluded.told)
        ELSE 1 END`.execute(db)
  await sql`DROP TABLE moved`.execute(db)
}
