import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import type { Pool } from 'pg'
import { nameDatabase, openPool } from './postgres-pool.ts'

/** The right of one relay to use a database. */
export interface RelayLease {
  /** Resolves with the reason when another relay has taken the database over, which it does when this one has not been seen for a while. */
  readonly lost: Promise<Error>
  /** Ends it: the next relay need not wait. */
  release(): Promise<void>
}

export interface LeaseOptions {
  /** How long it lasts without being renewed, in milliseconds. */
  readonly ttlMs: number
  /** Told when another relay seems to be there, before it is waited for. */
  onWaiting(holder: string): void
}

/** The time of the server in milliseconds: clocks of relays may differ. */
const NOW_MS = '(extract(epoch from clock_timestamp()) * 1000)::bigint'
const CONNECT_TIMEOUT_MS = 5000
const LOOK_EVERY_MS = 250
const RENEWALS_PER_TTL = 3

const TAKE = `insert into lease (role, holder, epoch, until_ms) values ('relay', $1, 1, ${NOW_MS} + $2::bigint)
  on conflict (role) do update set holder = excluded.holder, epoch = lease.epoch + 1, until_ms = excluded.until_ms
  where lease.until_ms <= ${NOW_MS} or lease.holder = $3 returning epoch`
const RENEW = `update lease set until_ms = ${NOW_MS} + $3::bigint where role = 'relay' and holder = $1 and epoch = $2`
const RELEASE = `update lease set until_ms = 0 where role = 'relay' and holder = $1 and epoch = $2`

/**
 * Takes a database for one relay. This version does not share the work of polling and delivering between replicas, so a second relay is refused. One that was
 * killed does not block the next: its lease lapses, or, if it ran on this machine, it is seen that its process is gone.
 */
export async function takeRelayLease(url: string, { ttlMs, onWaiting }: LeaseOptions): Promise<RelayLease> {
  const holder = `${hostname()}/${process.pid}/${randomBytes(4).toString('hex')}`
  const pool = openPool(url, {
    connectionsMax: 1,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    answerTimeoutMs: ttlMs,
    onConnectionLost: () => undefined,
  })
  try {
    return holdLease(pool, holder, await waitForLease(pool, url, holder, { ttlMs, onWaiting }), ttlMs)
  } catch (error) {
    await pool.end()
    throw error
  }
}

/** Resolves with the epoch of the lease. */
async function waitForLease(pool: Pool, url: string, holder: string, { ttlMs, onWaiting }: LeaseOptions): Promise<number> {
  let waitedMs = 0
  for (;;) {
    const other = await holderOf(pool)
    const { rows } = await pool.query<{ epoch: number }>(TAKE, [holder, ttlMs, isGone(other) ? other : null])
    if (rows[0] !== undefined) return rows[0].epoch
    if (waitedMs === 0) onWaiting(other ?? '')
    if (waitedMs > ttlMs * 2) {
      throw new Error(
        `store: another relay uses ${nameDatabase(url)}: ${describeHolder(other)}. This version runs one relay on a database. Stop the other one, or name another database.`,
      )
    }
    await pause(LOOK_EVERY_MS)
    waitedMs += LOOK_EVERY_MS
  }
}

async function holderOf(pool: Pool): Promise<string | null> {
  const { rows } = await pool.query<{ holder: string }>("select holder from lease where role = 'relay'")
  return rows[0]?.holder ?? null
}

/** Whether the process of a holder is certainly gone: it ran on this machine, and nothing runs under its number, or this process itself does. */
function isGone(holder: string | null): boolean {
  const [host, pid] = holder?.split('/') ?? []
  if (host !== hostname() || pid === undefined) return false
  if (Number(pid) === process.pid) return true
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
}

function describeHolder(holder: string | null): string {
  const [host, pid] = holder?.split('/') ?? []
  return `process ${pid} on ${host}`
}

function holdLease(pool: Pool, holder: string, epoch: number, ttlMs: number): RelayLease {
  const over = new AbortController()
  const lost = Promise.withResolvers<Error>()
  const everyMs = ttlMs / RENEWALS_PER_TTL
  let isAnswered = true
  const renewing = renew()

  /** Resolves with the number of rows changed; null: the server did not answer, and then it gives the lease to nobody else. */
  async function ask(text: string, values: readonly unknown[]): Promise<number | null> {
    // The types of pg do not know that a query may have its own timeout.
    const query = { text, values: [...values], query_timeout: everyMs }
    const result = await pool.query(query).catch(() => null)
    isAnswered = result !== null
    return result?.rowCount ?? null
  }

  async function renew(): Promise<void> {
    while (!over.signal.aborted) {
      await pause(everyMs, undefined, { signal: over.signal }).catch(() => undefined)
      if (over.signal.aborted) return
      const renewed = await ask(RENEW, [holder, epoch, ttlMs])
      if (renewed === null || renewed === 1) continue
      lost.resolve(new Error('another relay has taken the database over, because this one was not seen for a while'))
      return
    }
  }

  return {
    lost: lost.promise,
    async release() {
      over.abort()
      await renewing
      // Otherwise it lapses by itself, and a stop need not wait for a server that is not there.
      if (isAnswered) await ask(RELEASE, [holder, epoch])
      if (!pool.ending) await pool.end()
    },
  }
}
