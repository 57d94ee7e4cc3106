import { type RawBuilder, sql } from 'kysely'
import type { Audience } from '../../../core/domain/history/audience.ts'
import type { ParcelJoin } from '../../../core/domain/history/parcel-state.ts'
import type { KeptSighting } from '../../../core/domain/history/sightings.ts'
import type { Session } from '../../../core/store/engine.ts'
import { rawStatement } from '../postgres-dialect.ts'

/**
 * The base of provisional sequences. While a batch is computed the counter is not locked, so new sequences are provisional and count up from
 * here. When the batch is applied, `PROVISIONAL + n` becomes the last real sequence plus n.
 */
export const PROVISIONAL = 2 ** 52

/** Makes an expression with which the server turns a provisional number into the real one. It leaves other numbers as they are. */
export function real(number: RawBuilder<unknown>): RawBuilder<number> {
  return sql`(case when ${number} > ${sql.lit(PROVISIONAL)} then ${number} - ${sql.lit(PROVISIONAL)} + ${base} else ${number} end)`
}

/** Like `real`, for an encoded audience: a negated number, or a number plus one (`encodeAudience`). */
export function realAudience(audience: RawBuilder<unknown>): RawBuilder<number> {
  return sql`(case when ${audience} > ${sql.lit(PROVISIONAL)} then ${audience} - ${sql.lit(PROVISIONAL)} + ${base}
    when ${audience} < ${sql.lit(-PROVISIONAL)} then ${audience} + ${sql.lit(PROVISIONAL)} - ${base} else ${audience} end)`
}

/** Like `real`, for encoded tellings (`encodeTellings`). Their times are far below all provisional numbers. */
export function realTellings(tellings: RawBuilder<unknown>): RawBuilder<string | null> {
  return sql`(case when ${tellings} is not null then (
    select '[' || string_agg(${real(sql`n.value::bigint`)}::text, ',' order by n.place) || ']'
    from json_array_elements_text(${tellings}::json) with ordinality as n (value, place)) end)`
}

const base = sql`(select base from counter where name = 'sequence')`

/** Puts real numbers into a join, because the audit trail stores them in a text, in which the server cannot replace them. */
export function realJoin(join: ParcelJoin, baseNumber: number): ParcelJoin {
  const number = (sequence: number) => (sequence > PROVISIONAL ? sequence - PROVISIONAL + baseNumber : sequence)
  const audience = (of: Audience): Audience =>
    'tellings' in of ? { ...of, tellings: of.tellings.map((telling) => ({ ...telling, at: number(telling.at) })) } : of
  const sighting = (kept: KeptSighting): KeptSighting => ({ ...kept, sequence: number(kept.sequence), audience: audience(kept.audience) })
  return {
    ...join,
    survivor: { ...join.survivor, sightings: join.survivor.sightings.map(sighting) },
    others: join.others.map((other) => ({ ...other, sequence: number(other.sequence), sightings: other.sightings.map(sighting) })),
    shared: join.shared.map(sighting),
    renumbered: join.renumbered.map(({ from, to }) => ({ from: number(from), to: number(to) })),
  }
}

/** The database's sequence advances by this much at a time, so each of its values begins a run of this many inbox ids. */
const RUN = 10_000

const takeRun = rawStatement()(() => sql<{ first: number }>`select nextval('inbox_numbers') as first`)

/** Assigns inbox ids. A replica takes a run of numbers from the database and uses it up before it takes the next, to leave few gaps. */
export interface InboxNumbers {
  /** Reserves `count` consecutive numbers and resolves with the first. */
  take(session: Session, count: number): Promise<number>
}

export function createInboxNumbers(): InboxNumbers {
  let [next, end] = [0, 0]
  return {
    async take(session, count) {
      if (end - next < count) {
        // If two batches take a run at the same time, the rest of one run stays unused.
        const [row] = await session.all(takeRun, {})
        if (row === undefined) throw new Error('the sequence of the inbox gave no number')
        ;[next, end] = [row.first, row.first + RUN]
      }
      const first = next
      next += count
      return first
    },
  }
}
