import type { QueryResult, QueryResultRow } from 'pg'
import pg, { type Pool, type PoolClient } from 'pg'
import { decodeConcerns } from '../../../console/problems/concern.ts'
import { dispatcherOf, type Replica, type ReplicaConfig, type Role } from '../../../core/domain/admin/replica.ts'
import type { LessonTable } from '../../../core/store/polling/shared-carrier.ts'
import type { Assignment, ReplicaTable, RoleChange, TimeSample } from '../../replicas/replica-lease.ts'
import { SERVER } from '../counter.ts'
import { IDLE_MS_MAX, isStorageFailure } from '../postgres.ts'
import { runningFailure } from '../postgres-failure.ts'
import { type ServerWatch, type WatchedPool, watchServer } from '../server-watch.ts'
import { createLostCommits, type LostCommits, namesIn, type ReplicaStanding, timelineOf } from './lost-commits.ts'

const CONNECT_TIMEOUT_MS = 5000
/** One connection renews leases and polls for changes. The other changes roles, and may have to wait for transactions of a dead replica. */
const CONNECTIONS = 2

/** The server's time in epoch milliseconds, because the clocks of replicas may differ. */
const NOW_MS = '(extract(epoch from clock_timestamp()) * 1000)::bigint'
const BEGIN = `begin isolation level read committed; set local lock_timeout = 5000; set local idle_in_transaction_session_timeout = ${IDLE_MS_MAX}`

const LOCK_ROLES = "select value from counter where name = 'roles' for update"
const STANDING = `(select ${SERVER} from counter where name = 'sequence') as server, (select value from counter where name = 'sequence') as sequence`
const OTHERS = `select id, name, keys from replica where until_ms > ${NOW_MS} order by id`
const REGISTER = `insert into replica (name, version, fingerprint, endpoints, keys, started_at_ms, seen_at_ms, until_ms, configured_at_ms)
  select $1, $2, $3, $4, $5, now_ms, now_ms, now_ms + $6::bigint, coalesce($7::bigint, now_ms) from (select ${NOW_MS} as now_ms) as clock
  returning id, seen_at_ms as now_ms, started_at_ms, seen_at_ms, ${STANDING}`
const renewal = (id: number, ttlMs: number, concerns: string) =>
  `update replica set seen_at_ms = clock.now_ms, until_ms = clock.now_ms + ${whole(ttlMs)}, concerns = ${pg.escapeLiteral(concerns)} from (select ${NOW_MS} as now_ms) as clock,
  (select seen_at_ms from replica where id = ${whole(id)}) as before
  where id = ${whole(id)} returning replica.seen_at_ms as now_ms, started_at_ms, before.seen_at_ms, ${STANDING},
  (select count(*) from replica as other where other.id <> ${whole(id)} and (other.until_ms <= ${NOW_MS} or other.seen_at_ms > ${NOW_MS}))::integer as lapsed`
const LOOK = `select name, value, version, ${SERVER} as server from counter where name in ('sequence', 'roles', 'orders', 'moving')`
/** `$1`: the server's time without steps forward (see `TrustedTime`); null: unknown. */
const FENCE = `delete from replica where until_ms <= least(${NOW_MS}, $1::bigint)`
/** After the server's clock was set back, `seen_at_ms` may be in the future. The lease of such a replica begins now. */
const PULL_BACK = `update replica set until_ms = until_ms - seen_at_ms + clock.now_ms, seen_at_ms = clock.now_ms from (select ${NOW_MS} as now_ms) as clock
  where seen_at_ms > clock.now_ms`
const CONFIGURE = `update replica set fingerprint = $2, endpoints = $3, keys = $4, configured_at_ms = ${NOW_MS} where id = $1 returning configured_at_ms as now_ms`
const LIST = `select id, name, version, fingerprint, keys, started_at_ms, seen_at_ms, case when until_ms > ${NOW_MS} then concerns end as concerns
  from replica order by id`
const RELEASE = 'delete from role where replica_id = $1 and name = any($2::text[])'
const TAKE = 'insert into role (name, replica_id) select name, $1 from unnest($2::text[]) as u (name)'
const ROLES_CHANGED = "update counter set value = value + 1 where name = 'roles'"

interface Registered extends ReplicaStanding {
  readonly id: number
  readonly now_ms: number
}

interface Renewed extends ReplicaStanding {
  readonly now_ms: number
  readonly lapsed: number
}

interface ReplicaRow {
  readonly id: number
  readonly name: string
  readonly version: string
  readonly fingerprint: string
  /** A list of names as JSON. */
  readonly keys: string
  readonly started_at_ms: number
  readonly seen_at_ms: number
  /** A list as JSON; null: the replica has an older version, or its lease is over. */
  readonly concerns: string | null
}

interface LiveRow {
  readonly id: number
  /** The names of the endpoints in the replica's config, as JSON. */
  readonly endpoints: string
}

interface EndpointRow {
  readonly id: number
  readonly name: string
  readonly origin: string
}

interface RoleRow {
  readonly name: Role
  readonly replica_id: number
}

export interface ReplicaTableOptions {
  readonly answerTimeoutMs: number
  readonly watch?: ServerWatch
  readonly monotonic?: () => number
  /** Notices lost commits. This replica's write store must use the same object. */
  readonly lostCommits?: LostCommits
}

/** Opens the table of replicas and of their roles. It has separate connections, so that a renewal never waits for a batch. */
export function openReplicaTable(
  address: string,
  {
    answerTimeoutMs,
    watch = watchServer(address),
    monotonic = () => performance.now(),
    lostCommits = createLostCommits(),
  }: ReplicaTableOptions,
): ReplicaTable & { readonly lessons: LessonTable } {
  const watched = watch.openPool({ connectionsMax: CONNECTIONS, connectTimeoutMs: CONNECT_TIMEOUT_MS, answerTimeoutMs })
  const { pool, run, close } = watched
  const trusted = createTrustedTime(monotonic)
  const timeline = () => run(() => timelineOf(pool))
  /** Every number under which this process has registered, with the time of the registration. */
  const own = new Map<number, number>()

  /**
   * Frees the roles of a registration that no longer counts because the server has lost commits. If this fails, the roles become free when
   * the lease lapses. The start time is compared, because another replica may have the same number now.
   */
  async function removeLost(id: number): Promise<void> {
    const remove = async (client: PoolClient) => {
      await client.query('delete from replica where id = $1 and started_at_ms = $2', [id, own.get(id)])
      await client.query(ROLES_CHANGED)
    }
    await withRoles(watched, remove).catch(() => undefined)
  }

  return {
    async register(replica) {
      const askedMs = monotonic()
      const row = await withRoles(watched, async (client) => {
        let registered = await register(client, replica)
        // A server that has lost commits may give this relay one of its earlier numbers again. `lostCommits` would refuse that number.
        while (own.has(registered.id)) {
          await client.query('delete from replica where id = $1', [registered.id])
          registered = await register(client, replica)
        }
        return registered
      })
      trusted.learn({ serverMs: row.now_ms, askedMs, heardMs: monotonic() }, replica.ttlMs)
      own.set(row.id, row.started_at_ms)
      await lostCommits.asking(row.id)(row, timeline)
      return { id: row.id, nowMs: row.now_ms }
    },
    async renew(id, ttlMs, concerns) {
      const askedMs = monotonic()
      const hasLost = lostCommits.asking(id)
      const [row] = await run(() => alone<Renewed>(pool, renewal(id, ttlMs, JSON.stringify(concerns))))
      if (row === undefined) return null
      trusted.learn({ serverMs: row.now_ms, askedMs, heardMs: monotonic() }, ttlMs)
      if (!(await hasLost(row, timeline))) return { nowMs: row.now_ms, lapsed: row.lapsed }
      // Do not wait for the removal: this relay must give up its roles at once.
      void removeLost(id)
      return null
    },
    async look() {
      const { rows } = await run(() => pool.query<{ name: string; value: number; version: number; server: number }>(LOOK))
      const found = new Map(rows.map((row) => [row.name, row]))
      const counted = (name: string) => found.get(name)?.value ?? 0
      return {
        server: rows[0]?.server ?? 0,
        sequence: counted('sequence'),
        endpoints: found.get('sequence')?.version ?? 0,
        roles: counted('roles'),
        orders: counted('orders'),
        isMoving: counted('moving') > 0,
      }
    },
    changeRoles: (id, decide) => withRoles(watched, (client) => changeRoles(client, { id, trustedMs: trusted.nowMs() }, decide)),
    list: () => run(() => list(pool)).catch(failAsStorage),
    configure: (id, config) => withRoles(watched, (client) => configure(client, id, config)),
    async remove(id) {
      await withRoles(watched, async (client) => {
        await client.query('delete from replica where id = $1', [id])
        await client.query(ROLES_CHANGED)
      })
    },
    lessons: createLessonTable(watched),
    close,
  }
}

async function register(
  client: PoolClient,
  { name, version, configFingerprint, endpoints, atRestKeys, ttlMs, configuredAtMs }: Parameters<ReplicaTable['register']>[0],
): Promise<Registered> {
  await refuseKeysOfOthers(client, atRestKeys, null)
  const values = [name, version, configFingerprint, JSON.stringify(endpoints), JSON.stringify(atRestKeys), ttlMs, configuredAtMs]
  const { rows } = await client.query<Registered>(REGISTER, values)
  const [row] = rows
  if (row === undefined) throw new Error('a replica could not be registered')
  await client.query(ROLES_CHANGED)
  return row
}

async function refuseKeysOfOthers(client: PoolClient, mine: readonly string[], myId: number | null): Promise<void> {
  const others = await client.query<{ id: number; name: string; keys: string }>(OTHERS)
  for (const { id, name, keys } of others.rows) if (id !== myId) refuseOtherKeys(mine, { name, keys: namesIn(keys) })
}

async function configure(
  client: PoolClient,
  id: number,
  { configFingerprint, endpoints, atRestKeys }: ReplicaConfig,
): Promise<number | null> {
  await refuseKeysOfOthers(client, atRestKeys, id)
  const values = [id, configFingerprint, JSON.stringify(endpoints), JSON.stringify(atRestKeys)]
  const { rows } = await client.query<{ now_ms: number }>(CONFIGURE, values)
  await client.query(ROLES_CHANGED)
  return rows[0]?.now_ms ?? null
}

/** Runs work in a transaction that excludes all other changes of replicas and roles. */
async function withRoles<T>({ pool, run }: WatchedPool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  return await run(async (check) => {
    const client = await pool.connect()
    let failure: Error | undefined
    try {
      check()
      await client.query(BEGIN)
      await client.query(LOCK_ROLES)
      const result = await work(client)
      await client.query('commit')
      return result
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error))
      throw error
    } finally {
      // After a failure the state of the connection is unknown, so close it.
      client.release(failure)
    }
  })
}

/**
 * Waits for the open transactions of replicas whose lease has lapsed, deletes these replicas, and shares the roles again. Returns this
 * replica's roles.
 */
async function changeRoles(
  client: PoolClient,
  { id, trustedMs }: { readonly id: number; readonly trustedMs: number | null },
  decide: (assignment: Assignment) => RoleChange,
): Promise<readonly Role[]> {
  await client.query(PULL_BACK)
  const fenced = await client.query(FENCE, [trustedMs])
  const live = await client.query<LiveRow>('select id, endpoints from replica order by id')
  const held = await client.query<RoleRow>('select name, replica_id from role order by name')
  const endpoints = await client.query<EndpointRow>('select id, name, origin from endpoint where removed_at_ms is null order by id')
  const { take, giveUp } = decide({
    live: live.rows.map((row) => row.id),
    holders: new Map(held.rows.map((row) => [row.name, row.replica_id])),
    roles: ['poller', 'janitor', ...endpoints.rows.map((row) => dispatcherOf(String(row.id)))],
    only: candidatesOf(endpoints.rows, live.rows),
  })
  await client.query(RELEASE, [id, giveUp])
  await client.query(TAKE, [id, take])
  // All replicas read the roles again after an announcement, so announce only a change.
  if ((fenced.rowCount ?? 0) + take.length + giveUp.length > 0) await client.query(ROLES_CHANGED)
  const left = held.rows.filter((row) => row.replica_id === id && !giveUp.includes(row.name)).map(({ name }) => name)
  return [...left, ...take]
}

/**
 * Lists, for each endpoint that comes from a config, the replicas whose config names it. Only they know the endpoint's key and how to reach it.
 * An endpoint that is managed in the store is absent, because all replicas can serve it.
 */
function candidatesOf(endpoints: readonly EndpointRow[], live: readonly LiveRow[]): NonNullable<Assignment['only']> {
  const named = live.map(({ id, endpoints: names }) => ({ id, names: new Set(namesIn(names)) }))
  const configured = endpoints.filter(({ origin }) => origin !== 'managed')
  return new Map(
    configured.map(({ id, name }) => [dispatcherOf(String(id)), named.filter(({ names }) => names.has(name)).map((one) => one.id)]),
  )
}

function failAsStorage(error: unknown): never {
  if (!isStorageFailure(error)) throw error
  throw runningFailure(error)
}

async function list(pool: Pool): Promise<readonly Replica[]> {
  const [replicas, roles] = await Promise.all([
    pool.query<ReplicaRow>(LIST),
    pool.query<RoleRow>('select name, replica_id from role order by name'),
  ])
  return replicas.rows.map((row) => ({
    id: row.id,
    name: row.name,
    version: row.version,
    configFingerprint: row.fingerprint,
    atRestKeys: namesIn(row.keys),
    startedAtMs: row.started_at_ms,
    lastSeenAtMs: row.seen_at_ms,
    roles: roles.rows.filter(({ replica_id }) => replica_id === row.id).map(({ name }) => name),
    concerns: decodeConcerns(row.concerns),
  }))
}

const takingLessons = (replicaId: number, limit: number) =>
  `with alive as (select id from replica where id = ${whole(replicaId)} for key share)
  delete from lesson where id in (select id from lesson order by id limit ${whole(limit)}) and exists (select 1 from alive) returning id, body`

/** Opens the table in which replicas store what they learn about the carrier (their lessons), for the poller to read. */
function createLessonTable({ pool, run }: WatchedPool): LessonTable {
  return {
    async add(lesson) {
      await run(() => pool.query('insert into lesson (body) values ($1)', [lesson]))
    },
    async take(replicaId, limit) {
      const rows = await run(() => alone<{ id: number; body: string }>(pool, takingLessons(replicaId, limit)))
      return rows.toSorted((a, b) => a.id - b.id).map(({ body }) => body)
    },
  }
}

/** Throws unless each of the two replicas can decrypt what the other encrypts. */
function refuseOtherKeys(mine: readonly string[], other: { readonly name: string; readonly keys: readonly string[] }): void {
  const [myFirst] = mine
  const [otherFirst] = other.keys
  const opens = (keys: readonly string[], first: string | undefined) => first === undefined || keys.includes(first)
  if (opens(mine, otherFirst) && opens(other.keys, myFirst)) return
  throw new Error(
    `secrets.atRestKeys: another relay on this database, ${other.name}, has other keys, and one of the two could not decrypt what the other encrypts. Give both ` +
      'the same keys. To replace a key, first add the new one at the end everywhere, then move it to the front. If that relay was stopped just now, start this one again in a few seconds.',
  )
}

/** How far the server's clock and the local monotonic clock may drift apart in a second, the time between two samples. */
const DRIFT_MS = 10

/**
 * Tells the time of a server's clock, but ignores a step forward for a while. Right after such a step, leases that were just renewed would
 * seem to have lapsed long ago.
 */
function createTrustedTime(monotonic: () => number) {
  /** The most by which the server's clock can be ahead of `monotonic()`; null: there was no sample. */
  let aheadMs: number | null = null
  let steppedAtMs: number | null = null
  return {
    /** `ttlMs`: how long a step forward is ignored. In that time every living replica renews its lease, so that the lease fits the new time. */
    learn({ serverMs, askedMs, heardMs }: TimeSample, ttlMs: number) {
      const mostMs = serverMs + 1 - askedMs
      const hasStepped = aheadMs !== null && serverMs - heardMs > aheadMs + DRIFT_MS
      steppedAtMs = hasStepped ? (steppedAtMs ?? heardMs) : null
      if (aheadMs !== null && hasStepped && heardMs - (steppedAtMs ?? heardMs) < ttlMs) return
      // Accept a step back at once, because an earlier time only makes leases last longer.
      aheadMs = aheadMs === null || hasStepped ? mostMs : Math.min(mostMs, aheadMs + DRIFT_MS)
      steppedAtMs = null
    },
    /** The latest time that the server's clock can show now, by the accepted samples; null: there was no sample. */
    nowMs: (): number | null => (aheadMs === null ? null : Math.floor(monotonic() + aheadMs)),
  }
}

/** Shorter than the driver's own limit. Otherwise the server would still wait for the lock after the driver has given up the statement. */
const ALONE_LOCK_TIMEOUT_MS = 1000

/**
 * Runs one statement, and limits its wait for locks. The statement and its limit go out in one message, which the server runs as one
 * transaction. So no transaction stays open between two messages, and the setting does not outlast the statement, even behind a pooler. A
 * message with several statements cannot have parameters.
 */
async function alone<R extends QueryResultRow>(pool: Pool, statement: string): Promise<readonly R[]> {
  const results: unknown = await pool.query(`set local lock_timeout = ${ALONE_LOCK_TIMEOUT_MS}; ${statement}`)
  // The driver returns a list for several statements, but its types do not say so.
  const [, { rows }] = results as readonly [QueryResult, QueryResult<R>]
  return rows
}

/** Writes an integer as text, for a statement that cannot have parameters. */
function whole(number: number): string {
  if (!Number.isSafeInteger(number)) throw new RangeError('not a whole number')
  return String(number)
}
