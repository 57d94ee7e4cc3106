import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

interface JoinTables {
  readonly feed: { readonly sequence: number; readonly kind: number; readonly entry: number }
  readonly audit: { readonly sequence: number; readonly kind: string; readonly detail: string }
}

const JOIN = 4

/** A join in the feed names the parcel that is no more, so that what was told of that parcel is found at the one that goes on. */
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
  if (typeof from !== 'object' || from === null || !('parcelId' in from)) throw new Error('the audit trail tells of a join and not of what')
  return Number(from.parcelId)
}
