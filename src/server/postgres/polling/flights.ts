import { hash, randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import type { FlightEnd } from '../../../core/domain/polling/carrier-answer.ts'
import type { Session } from '../../../core/store/engine.ts'
import type { SharedFlights } from '../../../core/store/polling/shared-carrier.ts'
import type { PostgresWriter } from '../postgres.ts'
import { rawStatement } from '../postgres-dialect.ts'
import { BUDGET_MS } from './budget-store.ts'

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
const read = rawStatement<{ key: string }>()(
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
      const [ended] = await writer.transaction((session) => session.all(read, { key }))
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
