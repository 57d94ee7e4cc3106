import { hash, randomBytes } from 'node:crypto'
import { type RawBuilder, sql } from 'kysely'
import { type BudgetRow, settleBudget } from '../../../core/domain/polling/call-budget.ts'
import type { FlightEnd, TokenRecord } from '../../../core/domain/polling/carrier-answer.ts'
import type { Session } from '../../../core/store/engine.ts'
import type { BudgetStore, SharedFlights, SharedToken } from '../../../core/store/polling/shared-carrier.ts'
import type { PostgresSession, PostgresWriter } from '../postgres.ts'
import { rawStatement } from '../postgres-dialect.ts'

/** The server's time when the expression is evaluated, in epoch milliseconds. */
const SERVER_MS = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`
/** The current time by the budget's clock, for a statement that does not lock the budget's row. */
const BUDGET_MS = sql<number>`(select greatest(seen_ms, ${SERVER_MS} + offset_ms) from carrier_budget where id = 1)`

interface StoredRow extends Pick<BudgetRow, 'days' | 'slots'> {
  readonly seen_ms: number
  readonly offset_ms: number
  readonly due_us: number
  readonly paused_until_ms: number
  readonly last_day: number
  readonly app_waits: BudgetRow['appWaits']
  readonly server_ms: number
}

/** Locks the row before it reads the clock. A time that was read first would be outdated after a wait for the lock. */
const lockRow = (serverMs: RawBuilder<number>) =>
  rawStatement()(
    () => sql<StoredRow>`
      with held as materialized (select * from carrier_budget where id = 1 for update)
      select held.*, ${serverMs} as server_ms from held`,
  )

type NumberParam = 'seenMs' | 'offsetMs' | 'dueUs' | 'pausedUntilMs' | 'lastDay'

const saveRow = rawStatement<Pick<BudgetRow, NumberParam> & { days: string; slots: string; appWaits: string }>()(
  (p) => sql`
    update carrier_budget set seen_ms = ${p.seenMs}::bigint, offset_ms = ${p.offsetMs}::bigint, due_us = ${p.dueUs}::bigint,
      paused_until_ms = ${p.pausedUntilMs}::bigint, last_day = ${p.lastDay}::bigint, days = ${p.days}::text::jsonb,
      slots = ${p.slots}::text::jsonb, app_waits = ${p.appWaits}::text::jsonb
    where id = 1`,
)

/**
 * Makes the budget store, a row that all replicas share. The row stays locked for one round trip: the server reads the row, this process
 * computes, and then sends the update and the commit together.
 *
 * @param serverMs the server's clock; a test passes another clock.
 */
export function createBudgetStore(writer: PostgresWriter, serverMs: RawBuilder<number> = SERVER_MS): BudgetStore {
  const lock = lockRow(serverMs)
  return {
    settle: (request, limits) =>
      writer.transaction(async (session) => {
        const [stored] = await session.all(lock, {})
        if (stored === undefined) throw new Error('the row of the budget is gone')
        const nowMs = stored.server_ms
        const { row, answer } = settleBudget(readRow(stored), { nowMs, wallMs: nowMs }, request, limits)
        const { days, slots, appWaits, ...numbers } = row
        session.enqueueWrite(saveRow, {
          ...numbers,
          days: JSON.stringify(days),
          slots: JSON.stringify(slots),
          appWaits: JSON.stringify(appWaits),
        })
        return answer
      }),
  }
}

function readRow(stored: StoredRow): BudgetRow {
  const { days, slots } = stored
  return {
    seenMs: stored.seen_ms,
    offsetMs: stored.offset_ms,
    dueUs: stored.due_us,
    pausedUntilMs: stored.paused_until_ms,
    lastDay: stored.last_day,
    days,
    slots,
    appWaits: stored.app_waits,
  }
}

type State = {
  readonly tries: number
  readonly troubles: number
  readonly trouble: string | null
  readonly refusedForMs: number | null
  readonly pausedForMs: number
  readonly mark: string | null
}

/** If `refusedForMs` is null, `refused_until_ms` becomes null too: the credentials are not refused. */
const change = (p: { readonly [Name in keyof State]: State[Name] }) => sql`
  tries = ${p.tries}::bigint, troubles = ${p.troubles}::bigint, trouble = ${p.trouble}::text, mark = ${p.mark}::text,
  refused_until_ms = ${BUDGET_MS} + ${p.refusedForMs}::bigint, paused_until_ms = ${BUDGET_MS} + ${p.pausedForMs}::bigint`
const END = sql`holder = null, holder_until_ms = 0`

const readToken = rawStatement()(
  () => sql<
    Omit<TokenRecord, 'refusedForMs' | 'pausedForMs' | 'mark'> & {
      refused_for_ms: number | null
      paused_for_ms: number
      mark: string | null
    }
  >`
    select version, sealed, tries, troubles, trouble, mark, case when refused_until_ms is not null then greatest(0, refused_until_ms - ${BUDGET_MS}) end as refused_for_ms,
      greatest(0, paused_until_ms - ${BUDGET_MS}) as paused_for_ms
    from carrier_token where id = 1`,
)
const claim = rawStatement<{ holder: string; version: number; leaseMs: number }>()(
  (p) => sql<{ version: number }>`
    update carrier_token set holder = ${p.holder}::text, holder_until_ms = ${BUDGET_MS} + ${p.leaseMs}::bigint
    where id = 1 and version = ${p.version}::bigint and (holder is null or holder = ${p.holder}::text or holder_until_ms <= ${BUDGET_MS})
    returning version`,
)
const replace = rawStatement<State & { holder: string; sealed: string | null }>()(
  (p) => sql<{ version: number }>`
    update carrier_token set version = version + 1, sealed = ${p.sealed}::text, ${change(p)}, ${END}
    where id = 1 and holder = ${p.holder}::text returning version`,
)
const giveUp = rawStatement<State & { holder: string }>()(
  (p) => sql<{ version: number }>`
    update carrier_token set ${change(p)}, ${END} where id = 1 and holder = ${p.holder}::text returning version`,
)
const accepted = rawStatement<{ version: number }>()(
  (p) => sql<{ version: number }>`
    update carrier_token set tries = 0, troubles = 0, trouble = null, refused_until_ms = null, mark = null
    where id = 1 and version = ${p.version}::bigint returning version`,
)
const refused = rawStatement<State & { version: number }>()(
  (p) => sql<{ version: number }>`
    update carrier_token set version = version + 1, sealed = null, ${change(p)}
    where id = 1 and version = ${p.version}::bigint returning version`,
)

/** Makes the store of the carrier's token, a row that all replicas share. Its waits use the budget's clock, which never goes back. */
export function createSharedToken(writer: PostgresWriter): SharedToken {
  const versionOf = async (ask: (session: PostgresSession) => Promise<readonly { readonly version: number }[]>): Promise<number | null> =>
    (await writer.transaction(ask))[0]?.version ?? null
  return {
    async read() {
      const [row] = await writer.transaction((session) => session.all(readToken, {}))
      if (row === undefined) throw new Error('the row of the token is gone')
      const { refused_for_ms: refusedForMs, paused_for_ms: pausedForMs, mark, ...rest } = row
      return { ...rest, refusedForMs, pausedForMs, mark: mark === null ? null : (JSON.parse(mark) as TokenRecord['mark']) }
    },
    claim: async (request) => (await versionOf((session) => session.all(claim, request))) !== null,
    replace: ({ mark, ...request }) => versionOf((session) => session.all(replace, { ...request, mark: encodeMark(mark) })),
    async giveUp({ mark, ...request }) {
      await versionOf((session) => session.all(giveUp, { ...request, mark: encodeMark(mark) }))
    },
    async accepted(version) {
      await versionOf((session) => session.all(accepted, { version }))
    },
    async refused({ mark, ...request }) {
      await versionOf((session) => session.all(refused, { ...request, mark: encodeMark(mark) }))
    },
  }
}

function encodeMark(mark: TokenRecord['mark']): string | null {
  return mark === null ? null : JSON.stringify(mark)
}

/** How long the result of a flight (a call to the carrier) is kept. The replicas that wait for the result look several times a second. */
const KEPT_MS = 3000
/** The most expired rows that the end of a flight removes. Each flight leaves only one row, so expired rows do not pile up. */
const REMOVED = sql.lit(8)

interface Ended {
  readonly outcome: FlightEnd['kind']
  readonly retry_after_ms: number | null
}

/**
 * Takes a flight: writes its row if the row is missing, has lapsed, or has a result that this caller cannot use. A caller that waited for the
 * flight can use any result. Any other caller can use only a recent `not_found`, whose row lapses more than `freshFromMs` from now.
 */
const take = rawStatement<{ key: string; holder: string; leaseMs: number; waited: number; freshFromMs: number }>()(
  (p) => sql<{ holder: string }>`
    insert into flight (key, holder, until_ms) values (${p.key}::text, ${p.holder}::text, ${BUDGET_MS} + ${p.leaseMs}::bigint)
    on conflict (key) do update set holder = excluded.holder, until_ms = excluded.until_ms, outcome = null, retry_after_ms = null
    where flight.until_ms <= ${BUDGET_MS}
      or (flight.outcome is not null and ${p.waited}::bigint = 0
        and not (flight.outcome = 'not_found' and flight.until_ms > ${BUDGET_MS} + ${p.freshFromMs}::bigint))
    returning holder`,
)
const readEnd = rawStatement<{ key: string }>()(
  (p) =>
    sql<Ended>`select outcome, retry_after_ms from flight where key = ${p.key}::text and outcome is not null and until_ms > ${BUDGET_MS}`,
)
const underWay = rawStatement<{ key: string }>()(
  (p) => sql<{ holder: string }>`select holder from flight where key = ${p.key}::text and outcome is null and until_ms > ${BUDGET_MS}`,
)
const renew = rawStatement<{ key: string; holder: string; leaseMs: number }>()(
  (p) => sql`
    update flight set until_ms = ${BUDGET_MS} + ${p.leaseMs}::bigint
    where key = ${p.key}::text and holder = ${p.holder}::text and outcome is null`,
)
const end = rawStatement<{ key: string; holder: string; outcome: string; retryAfterMs: number | null; keptMs: number }>()(
  (p) => sql`
    update flight set until_ms = ${BUDGET_MS} + ${p.keptMs}::bigint, outcome = ${p.outcome}::text, retry_after_ms = ${p.retryAfterMs}::bigint
    where key = ${p.key}::text and holder = ${p.holder}::text`,
)
const sweep = rawStatement()(
  () => sql`
    delete from flight where key = any(array(select key from flight where until_ms <= ${BUDGET_MS} order by until_ms limit ${REMOVED}))
      and until_ms <= ${BUDGET_MS}`,
)

const forget = rawStatement<{ keys: readonly string[] }>()((p) => sql`delete from flight where key = any(${p.keys}::text[])`)
const sweepAll = rawStatement()(() => sql`delete from flight where until_ms <= ${BUDGET_MS} or outcome is not null`)

/** Removes the flights about these names and all flights that are over. An erasure calls it, so that none outlives what it was about. */
export function forgetFlights(session: Session, names: readonly string[]): void {
  session.enqueueWrite(forget, { keys: names.map(flightKey) })
  session.enqueueWrite(sweepAll, {})
}

/** The row of a flight does not name the parcel that it is about. */
export function flightKey(key: string): string {
  return hash('sha256', key, 'base64url')
}

/** Makes the flights, which are rows with a lease. If several replicas want to make the same call at the same time, only one makes it. */
export function createSharedFlights(writer: PostgresWriter): SharedFlights {
  return {
    async take({ key: name, leaseMs, waited, notFoundForMs }) {
      const key = flightKey(name)
      const holder = randomBytes(8).toString('hex')
      const request = { key, leaseMs, holder, waited: waited ? 1 : 0, freshFromMs: Math.max(0, KEPT_MS - notFoundForMs) }
      const [taken] = await writer.transaction((session) => session.all(take, request))
      if (taken !== undefined) return { kind: 'taken', holder }
      const [ended] = await writer.transaction((session) => session.all(readEnd, { key }))
      if (ended === undefined) return { kind: 'held' }
      return { kind: 'ended', end: { kind: ended.outcome, retryAfterMs: ended.retry_after_ms } }
    },
    async isUnderWay(key) {
      return (await writer.transaction((session) => session.all(underWay, { key: flightKey(key) }))).length > 0
    },
    async renew({ key, ...lease }) {
      await writer.transaction((session) => session.run(renew, { ...lease, key: flightKey(key) }))
    },
    async end({ end: { kind, retryAfterMs }, key, holder }) {
      await writer.transaction((session) => session.run(end, { key: flightKey(key), holder, outcome: kind, retryAfterMs, keptMs: KEPT_MS }))
      // Do not wait for this clean-up. If it fails, a later clean-up removes the rows.
      writer.transaction((session) => session.run(sweep, {})).catch(() => undefined)
    },
  }
}
