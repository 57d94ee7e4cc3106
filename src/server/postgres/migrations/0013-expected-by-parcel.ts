import { type Kysely, sql } from 'kysely'

/** Adds an index by which a join, or a clock that is put back, finds the expected pushes of a parcel without reading those of all others. */
export const expectedByParcel = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql.raw('create index expected_push_by_parcel on expected_push (parcel_id)').execute(db)
  },
}
