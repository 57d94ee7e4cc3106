import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

interface JoinTables {
  readonly feed: { readonly sequence: number; readonly kind: number; readonly entry: number }
  readonly audit: { readonly sequence: number; readonly kind: string; readonly detail: string }
}

const JOIN = 4

/** Adds to each join in the feed the id of the deleted parcel, so that events of that parcel lead to the survivor. */
export const feedJoins: Migration = {
  async up(db: Kysely<JoinTables>): Promise<void> {
    const joins = await db.selectFrom('audit').select(['sequence', 'detail']).where('kind', '=', 'join').execute()
    for (const { sequence, detail } of joins) {
      await db
        .updateTable('feed')
        .set({ entry: joinedParcel(detail) })
        .where('sequence', '=', sequence)
        .where('kind', '=', JOIN)
        .execute()
    }
    await db.schema.createIndex('feed_joins').on('feed').columns(['entry', 'sequence']).where(sql.ref('kind'), '=', sql.lit(JOIN)).execute()
  },
}

function joinedParcel(detail: string): number {
  const said: unknown = JSON.parse(detail)
  const from = typeof said === 'object' && said !== null && 'from' in said ? said.from : null
  if (typeof from !== 'object' || from === null || !('parcelId' in from))
    throw new Error('an audit record of a join does not name the joined parcel')
  return Number(from.parcelId)
}
