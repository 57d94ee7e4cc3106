import { type RawBuilder, sql } from 'kysely'
import type { Audience } from '../../../domain/history/audience.ts'
import type { ParcelJoin } from '../../../domain/history/parcel-state.ts'
import type { KeptSighting } from '../../../domain/history/sightings.ts'

/**
 * Numbers are given when a batch is applied, from a counter that is locked no sooner than that. Until then those that are new stand above this, in their
 * order: a number that is higher is provisional, and as much above the last real one as it is above this.
 */
export const PROVISIONAL = 2 ** 52

/** The real number of one that may be provisional, computed where the counter is. */
export function real(number: RawBuilder<unknown>): RawBuilder<number> {
  return sql`(case when ${number} > ${sql.lit(PROVISIONAL)} then ${number} - ${sql.lit(PROVISIONAL)} + ${base} else ${number} end)`
}

/** The same for an encoded audience, which holds a number below 0 or a number and one. */
export function realAudience(audience: RawBuilder<unknown>): RawBuilder<number> {
  return sql`(case when ${audience} > ${sql.lit(PROVISIONAL)} then ${audience} - ${sql.lit(PROVISIONAL)} + ${base}
    when ${audience} < ${sql.lit(-PROVISIONAL)} then ${audience} + ${sql.lit(PROVISIONAL)} - ${base} else ${audience} end)`
}

const base = sql`(select base from counter where name = 'sequence')`

/** A join with real numbers: the audit trail writes them into texts. */
export function realJoin(join: ParcelJoin, baseNumber: number): ParcelJoin {
  const number = (sequence: number) => (sequence > PROVISIONAL ? sequence - PROVISIONAL + baseNumber : sequence)
  const audience = (of: Audience): Audience => ('at' in of ? { ...of, at: number(of.at) } : of)
  const sighting = (kept: KeptSighting): KeptSighting => ({ ...kept, sequence: number(kept.sequence), audience: audience(kept.audience) })
  return {
    ...join,
    survivor: { ...join.survivor, sightings: join.survivor.sightings.map(sighting) },
    others: join.others.map((other) => ({ ...other, sequence: number(other.sequence), sightings: other.sightings.map(sighting) })),
    shared: join.shared.map(sighting),
  }
}
