import type { Pool } from 'pg'
import { openingFailure } from './postgres-failure.ts'

const VERSION_MIN = 15

/** The settings that a server reports. Null: it lacks the setting, because it is another, compatible database. */
interface ServerFacts {
  readonly version: string
  readonly version_number: number
  readonly synchronous_commit: string | null
  readonly fsync: string | null
  readonly full_page_writes: string | null
  readonly encoding: string
  readonly is_standby: boolean
  readonly read_only: string | null
}

const QUERY = `select current_setting('server_version') as version, current_setting('server_version_num')::integer as version_number,
  current_setting('synchronous_commit', true) as synchronous_commit, current_setting('fsync', true) as fsync,
  current_setting('full_page_writes', true) as full_page_writes, current_setting('server_encoding') as encoding,
  pg_is_in_recovery() as is_standby, current_setting('default_transaction_read_only', true) as read_only`

/**
 * Checks a server before anything is written to it. Rejects, with all reasons and remedies, if it cannot be reached or written to, or could
 * lose confirmed commits. `name` names the database in messages.
 */
export async function refuseUnsafeServer(pool: Pool, name: string): Promise<void> {
  const [facts] = await readFacts(pool, name)
  const reasons = facts === undefined ? [] : faultsOf(facts)
  if (reasons.length > 0) throw new Error(reasons.map((reason) => `store: ${name}: ${reason}`).join('\n'))
}

async function readFacts(pool: Pool, name: string): Promise<readonly ServerFacts[]> {
  try {
    return (await pool.query<ServerFacts>(QUERY)).rows
  } catch (error) {
    throw openingFailure(name, error)
  }
}

/** Lists the reasons why a server with these settings is not safe to use, each with its remedy. */
export function faultsOf(facts: ServerFacts): readonly string[] {
  const faults: string[] = []
  if (facts.version_number < VERSION_MIN * 10_000)
    faults.push(`the server is PostgreSQL ${facts.version}; the relay needs ${VERSION_MIN} or newer. Upgrade the server.`)
  if (facts.is_standby)
    faults.push('the server is a standby, which can only be read (pg_is_in_recovery). Name the primary in `store`, or promote this server.')
  else if (facts.read_only === 'on')
    faults.push(
      'default_transaction_read_only is on, so nothing can be written. Write default_transaction_read_only = off in postgresql.conf, or reset ' +
        'it where it was set for this user or database (ALTER ROLE or ALTER DATABASE ... RESET default_transaction_read_only).',
    )
  if (facts.encoding !== 'UTF8')
    faults.push(
      `the encoding of the database is ${facts.encoding}, which cannot hold every text. An encoding cannot be changed: make another database ` +
        "(CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0) and name it in `store`.",
    )
  if (facts.synchronous_commit === 'off')
    faults.push(
      'synchronous_commit is off, so a server that stops loses what it has confirmed. Write synchronous_commit = on in postgresql.conf, or reset ' +
        'it where it was set for this user or database (ALTER ROLE or ALTER DATABASE ... RESET synchronous_commit).',
    )
  if (facts.fsync === 'off')
    faults.push(
      'fsync is off, so a power cut destroys the database. Write fsync = on in postgresql.conf and reload the server’s configuration.',
    )
  if (facts.full_page_writes === 'off')
    faults.push(
      'full_page_writes is off, so a page that a power cut left half written cannot be repaired. Write full_page_writes = on in postgresql.conf ' +
        'and reload the server’s configuration.',
    )
  return faults
}
