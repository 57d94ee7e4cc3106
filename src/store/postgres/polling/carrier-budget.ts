import { type RawBuilder, sql } from 'kysely'
import type { BudgetAnswer, BudgetHold, BudgetRequest, SharedLimits } from '../../../domain/polling/shared-budget.ts'
import type { SharedBudget } from '../../../flow/polling/ports.ts'
import type { PostgresWriter } from '../postgres.ts'
import { rawStatement } from '../raw-statement.ts'

/** The server's time, epoch milliseconds, when the expression is evaluated. */
const SERVER_MS = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`
/** The budget's clock beside a statement that does not hold the budget: see `settleStatement`. */
export const BUDGET_MS = sql<number>`(select greatest(seen_ms, ${SERVER_MS} + offset_ms) from carrier_budget where id = 1)`

/** More days than these are there only if the server's clock jumps all the time. */
const DAYS_MAX = sql.lit(8)
const DAY_MS = sql.lit(86_400_000)
/** When to look again at what other replicas decide. */
const LOOK_MS = sql.lit(150)
/** How long after an app could have gone on the schedules of other replicas still let it pass. */
const GRACE_MS = sql.lit(500)

/** The shapes that a statement takes: lists of names are arrays, the rest are numbers. */
type Row = Pick<BudgetAnswer, 'granted'> & {
  readonly hold: BudgetHold | null
  readonly retry_ms: number
  readonly next_ms: number
  readonly at_ms: number
  readonly calls_today: number
  readonly day_left_ms: number
}

type Params = { readonly [Name in keyof SharedLimits]: number } & {
  readonly replica: string
  readonly names: readonly string[]
  readonly ended: readonly string[]
  readonly apps: number
  readonly schedule: number
  readonly pauseMs: number
  readonly atMostMs: number | null
}

/** Locks the row, looks at the clock, and drops what has ended. A statement without names wants nothing, and leaves its apps waiting. */
const taken = (nowMs: RawBuilder<number>, p: Params) => sql`
    with held as materialized (
      select * from carrier_budget where id = 1 for update
    ), turn as materialized (
      select held.*, ${nowMs} as server_ms from held
    ), clocked as materialized (
      select turn.*, server_ms / ${DAY_MS} as today,
        greatest(seen_ms, least(server_ms + offset_ms, coalesce(${p.atMostMs}::bigint, server_ms + offset_ms))) as at_ms
      from turn
    ), pruned as materialized (
      select clocked.*, at_ms * 1000 as at_us, greatest(due_us, at_ms * 1000) as from_us,
        case when ${p.pauseMs}::bigint > 0 then greatest(paused_until_ms, at_ms + ${p.pauseMs}::bigint) else paused_until_ms end as pause_ms,
        (select coalesce(jsonb_object_agg(key, value), '{}') from jsonb_each(calls - ${p.ended}::text[]) where value::bigint > at_ms) as live,
        (select coalesce(jsonb_object_agg(key, value), '{}') from jsonb_each(
          case when cardinality(${p.names}::text[]) = 0 then app_waits else app_waits - ${p.replica}::text end) where value::bigint > at_ms) as waits,
        (select coalesce(jsonb_object_agg(key, value), '{}') from jsonb_each(days) where today <= last_day or key::bigint <= today) as kept
      from clocked`

/** How many places each priority gets. */
const granted = (p: Params) => sql`
    ), counted as materialized (
      select pruned.*,
        (select coalesce(sum(value::bigint), 0)::bigint from jsonb_each(kept) where key::bigint >= today) as made,
        (select count(*) from jsonb_object_keys(live)) as in_flight,
        case when from_us - ${p.headStartUs}::bigint > at_us then 0
          else (at_us + ${p.headStartUs}::bigint - from_us) / ${p.intervalUs}::bigint + 1 end as on_time
      from pruned
    ), allowed as materialized (
      select counted.*, case when pause_ms > at_ms then 0
        else greatest(0, least(on_time, ${p.concurrency}::bigint - in_flight, ${p.callsPerDay}::bigint - made)) end as places
      from counted
    ), shared as materialized (
      select allowed.*, least(${p.apps}::bigint, places) as to_apps,
        case when waits = '{}' then least(${p.schedule}::bigint, places - least(${p.apps}::bigint, places)) else 0 end as to_schedule
      from allowed
    ), granted as materialized (
      select shared.*, to_apps + to_schedule as grants,
        case when to_apps + to_schedule > 0 then from_us + (to_apps + to_schedule) * ${p.intervalUs}::bigint else due_us end as next_due_us
      from shared`

/** Why not more, and when to ask again. */
const judged = (p: Params) => sql`
    ), paced as materialized (
      select granted.*, greatest(0, (next_due_us - ${p.headStartUs}::bigint - at_us + 999) / 1000) as pace_ms,
        ${DAY_MS} - server_ms % ${DAY_MS} as day_left_ms
      from granted
    ), judged as materialized (
      select paced.*, case
          when grants = ${p.apps}::bigint + ${p.schedule}::bigint then null
          when made + grants >= ${p.callsPerDay}::bigint then 'spent'
          when pause_ms > at_ms then 'paused'
          when in_flight + grants >= ${p.concurrency}::bigint then 'busy'
          when pace_ms > 0 then 'wait'
          else 'apps' end as hold
      from paced
    ), answered as materialized (
      select judged.*, case hold
          when 'spent' then day_left_ms when 'paused' then pause_ms - at_ms when 'wait' then pace_ms else ${LOOK_MS} end as retry_ms
      from judged
    )`

const written = (p: Params) => sql`
    update carrier_budget set
      seen_ms = at_ms,
      offset_ms = at_ms - server_ms,
      due_us = next_due_us,
      paused_until_ms = pause_ms,
      last_day = today,
      days = case when grants = 0 then kept else (
        with one as (select key::bigint as day, value::bigint as calls from jsonb_each(kept) union all select today, grants)
        select jsonb_object_agg(day::text, calls) from (
          select greatest(day, (select min(day) from (select distinct day from one order by day desc limit ${DAYS_MAX}) as recent)) as day, sum(calls) as calls
          from one group by 1) as joined) end,
      calls = live || (
        select coalesce(jsonb_object_agg(name, at_ms + ${p.placeMs}::bigint), '{}')
        from unnest(${p.names}::text[]) with ordinality as wanted (name, nth) where nth <= grants),
      app_waits = case when ${p.apps}::bigint > to_apps and hold <> 'spent'
        then waits || jsonb_build_object(${p.replica}::text, at_ms + retry_ms + ${GRACE_MS}) else waits end
    from answered where carrier_budget.id = 1
    returning grants as granted, hold, retry_ms::bigint as retry_ms, greatest(pace_ms, pause_ms - at_ms, 0) as next_ms, at_ms,
      made + grants as calls_today, day_left_ms`

/**
 * The whole rule in one statement on one row. It locks the row first and then looks at the clock, so its time is that of its turn.
 *
 * **Clock.** `at_ms` is the server's time plus `offset_ms`. It never goes back: when the server's clock does, the offset grows by as much. It
 * runs ahead no further than `atMostMs`, which a replica knows from its own monotonic clock. Only the day is by the server's clock itself (UTC).
 *
 * **Day.** As `CallDays` counts: calls on the day of now and on later ones, from which the clock was put back, count; of many days the oldest are
 * counted as one.
 *
 * **Rate.** As `CallBudget` counts: `due_us` is when the calls made so far would be due at an even pace, and a call may run ahead by the head start.
 *
 * **Concurrency.** `calls` holds until when each place is taken. A place whose replica was killed lapses then.
 *
 * **Apps first.** `app_waits` holds until when the schedule of other replicas stands back for apps that wait in one.
 */
const settleStatement = (nowMs: RawBuilder<number>) =>
  rawStatement<Params>()((p) => sql<Row>`${taken(nowMs, p)} ${granted(p)} ${judged(p)} ${written(p)}`)

const settle = settleStatement(SERVER_MS)

/** The budget in a row that all replicas share. `statement`: the rule, by another clock than the server's in tests. */
export function createSharedBudget(writer: PostgresWriter, statement = settle): SharedBudget {
  return {
    async settle({ names, ended, ...request }: BudgetRequest, limits: SharedLimits) {
      // Not waited for before the commit is sent: the row is locked no longer than the server takes.
      const { rows } = await writer.transaction(async (session) => {
        const sent = session.all(statement, { ...request, ...limits, names, ended })
        sent.catch(() => undefined)
        return { rows: sent }
      })
      const [row] = await rows
      if (row === undefined) throw new Error('the row of the budget is gone')
      return {
        granted: row.granted,
        hold: row.hold,
        retryMs: row.retry_ms,
        nextMs: row.next_ms,
        atMs: row.at_ms,
        callsToday: row.calls_today,
        dayLeftMs: row.day_left_ms,
      }
    },
  }
}

/** The rule by a clock of a test's own. */
export const settleBy = settleStatement
