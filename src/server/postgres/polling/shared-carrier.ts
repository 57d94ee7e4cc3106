import { sql } from 'kysely'
import type { TokenRecord } from '../../../core/domain/polling/carrier-answer.ts'
import type { SharedCarrier, SharedFlights, SharedToken } from '../../../core/store/polling/shared-carrier.ts'
import { createPostgresWriter, type PostgresWriter } from '../postgres.ts'
import { rawStatement } from '../postgres-dialect.ts'
import { openPostgres } from '../postgres-engine.ts'
import type { PostgresSession } from '../postgres-session.ts'
import { watchServer } from '../server-watch.ts'
import { BUDGET_MS, createBudgetStore } from './budget-store.ts'
import { createSharedFlights } from './flights.ts'

/** The number of connections. They are separate from those of the store, so that no call to the carrier waits for a batch of pushes. */
const CONNECTIONS = 2

/**
 * Opens the budget, token and flights that replicas share. Their tables must exist. `watch`: the `ServerWatch` of the relay; absent: a new one
 * is made.
 */
export function openSharedCarrier(
  address: string,
  watch = watchServer(address),
): SharedCarrier & { readonly flights: SharedFlights; close(): Promise<void> } {
  const { pool, options, close } = openPostgres(address, CONNECTIONS, watch)
  const writer = createPostgresWriter(pool, options)
  return { budget: createBudgetStore(writer), token: createSharedToken(writer), flights: createSharedFlights(writer), close }
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

const read = rawStatement()(
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
function createSharedToken(writer: PostgresWriter): SharedToken {
  const versionOf = async (ask: (session: PostgresSession) => Promise<readonly { readonly version: number }[]>): Promise<number | null> =>
    (await writer.transaction(ask))[0]?.version ?? null
  return {
    async read() {
      const [row] = await writer.transaction((session) => session.all(read, {}))
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
