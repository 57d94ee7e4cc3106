import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { nameDatabase, openPool } from '../../../src/store/postgres/postgres-pool.ts'
import { faultsOf, refuseUnsafeServer } from '../../../src/store/postgres/refuse-unsafe-server.ts'
import { withClient } from '../../support/postgres-client.ts'
import { createDatabase, sharedServer, startOwnServer } from '../../support/postgres-database.ts'

const CANARY = 'canary-7f3a'

/** As a start of the relay would; what it refuses with, if it does. */
async function look(url: string, connectTimeoutMs = 5000): Promise<string | null> {
  const pool = openPool(url, { connectionsMax: 1, connectTimeoutMs, onConnectionLost: () => undefined })
  try {
    await refuseUnsafeServer(pool, nameDatabase(url))
    return null
  } catch (error) {
    expect(inspect(error, { depth: 5 })).not.toContain(CANARY)
    return error instanceof Error ? error.message : String(error)
  } finally {
    await pool.end()
  }
}

function changed(url: string, parts: Partial<Pick<URL, 'hostname' | 'pathname' | 'username' | 'password' | 'search'>>): string {
  return Object.assign(new URL(url), parts).href
}

test('a server as it comes is accepted', async () => {
  expect(await look((await createDatabase('nothing')).url)).toBeNull()
})

describe('S19: the start is refused by name', () => {
  test.each(['fsync', 'full_page_writes'])('on a server with %s off', async (setting) => {
    await using server = await startOwnServer({ settings: { [setting]: 'off' } })
    expect(await look(server.url())).toMatch(
      new RegExp(`^store: postgres://relay@127\\.0\\.0\\.1:\\d+/postgres: ${setting} is off, .*Write ${setting} = on`),
    )
  })

  test('on a database with synchronous_commit off', async () => {
    const { url, name } = await createDatabase('nothing')
    await withClient(await sharedServer(), (client) => client.query(`alter database ${name} set synchronous_commit = off`))
    expect(await look(url)).toMatch(
      /: synchronous_commit is off, .*Write synchronous_commit = on .*ALTER DATABASE \.\.\. RESET synchronous_commit/,
    )
  })

  test('on a database with default_transaction_read_only on', async () => {
    const { url, name } = await createDatabase('nothing')
    await withClient(await sharedServer(), (client) => client.query(`alter database ${name} set default_transaction_read_only = on`))
    expect(await look(url)).toMatch(/: default_transaction_read_only is on, .*ALTER DATABASE \.\.\. RESET default_transaction_read_only/)
  })

  test('on a database with another encoding', async () => {
    expect(await look((await createDatabase('nothing, in SQL_ASCII')).url)).toMatch(
      /: the encoding of the database is SQL_ASCII, .*CREATE DATABASE \.\.\. ENCODING 'UTF8'/,
    )
  })

  test('on a standby', async () => {
    await using server = await startOwnServer()
    await server.stop()
    writeFileSync(join(server.folder, 'data', 'standby.signal'), '')
    await server.start()
    expect(await look(server.url())).toMatch(/: the server is a standby, .*Name the primary in `store`, or promote this server\.$/)
  })

  test('on a server older than 15, with all that is wrong at once; what a relative of PostgreSQL does not know is not held against it', () => {
    const sound = { synchronous_commit: 'on', fsync: 'on', full_page_writes: 'on', encoding: 'UTF8', is_standby: false, read_only: 'off' }
    expect(faultsOf({ ...sound, version: '15.0', version_number: 150_000, synchronous_commit: 'local' })).toEqual([])
    expect(
      faultsOf({
        ...sound,
        version: '15.0',
        version_number: 150_000,
        synchronous_commit: null,
        fsync: null,
        full_page_writes: null,
        read_only: null,
      }),
    ).toEqual([])
    expect(faultsOf({ ...sound, version: '14.20', version_number: 140_020, fsync: 'off' })).toEqual([
      'the server is PostgreSQL 14.20; the relay needs 15 or newer. Upgrade the server.',
      expect.stringMatching(/^fsync is off/),
    ])
  })
})

describe('a database that cannot be had is named without its password', () => {
  test('that does not accept the password', async () => {
    const { url, name } = await createDatabase('nothing')
    const refusal = await look(changed(url, { password: CANARY }))
    expect(refusal).toMatch(new RegExp(`^store: postgres://relay@127\\.0\\.0\\.1:\\d+/${name} does not accept the user's password\\.`))
  })

  test('that is not there', async () => {
    const url = changed(await sharedServer(), { pathname: '/nowhere' })
    expect(await look(url)).toMatch(
      /^store: there is no such database at .*\/nowhere \(database "nowhere" does not exist\)\. Make it \(CREATE DATABASE/,
    )
  })

  test('whose user may not connect', async () => {
    const { url, name } = await createDatabase('nothing')
    const role = `${name}_user`
    const server = await sharedServer()
    await withClient(server, (client) =>
      client.query(`create role ${role} login password '${CANARY}'; revoke connect on database ${name} from public`),
    )
    onTestFinished(() => withClient(server, async (client) => void (await client.query(`drop role ${role}`))))
    const as = (user: string) => changed(url, { username: user, password: CANARY })
    expect(await look(as(role))).toMatch(/the user may not use .*GRANT CONNECT ON DATABASE/)
    expect(await look(as('nobody_at_all'))).toMatch(/does not accept the user's password/)
  })

  test('that has no connection left', async () => {
    await using server = await startOwnServer({ settings: { max_connections: '4', superuser_reserved_connections: '0' } })
    const taken = openPool(server.url(), { connectionsMax: 4, connectTimeoutMs: 5000, onConnectionLost: () => undefined })
    const held = await Promise.all([1, 2, 3, 4].map(() => taken.connect()))
    expect(await look(server.url())).toMatch(/has no connection left .*Raise the server's max_connections/)
    for (const client of held) client.release()
    await taken.end()
  })

  test('where nothing answers, or nobody knows the host', async () => {
    await using server = await startOwnServer()
    await server.stop('immediate')
    const url = changed(server.url(), { password: CANARY })
    expect(await look(url)).toMatch(
      /^store: no PostgreSQL answers at postgres:\/\/relay@127\.0\.0\.1:\d+\/postgres \(ECONNREFUSED\)\. Look at the host/,
    )
    expect(await look(changed(url, { hostname: 'nowhere.invalid' }))).toMatch(/the host of .* is not known here/)
    await server.start()
    expect(await look(server.url())).toBeNull()
  })

  // On a server of its own: the driver leaves such a connection open, and no database can be dropped until the server gives it up.
  test('that asks for a password, and there is none', async () => {
    await using server = await startOwnServer()
    expect(await look(changed(server.url(), { password: '' }))).toMatch(/asks for a password, and `store` names none/)
  })

  test('where something takes the connection and says nothing', async () => {
    const silent = createServer(() => undefined)
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void silent.close())
    const address = silent.address()
    const port = typeof address === 'object' ? address?.port : null
    expect(await look(`postgres://relay:${CANARY}@127.0.0.1:${port}/relay`, 50)).toMatch(/^store: no PostgreSQL answers at/)
  })

  test('that is to be reached encrypted, by a server that cannot', async () => {
    const { url } = await createDatabase('nothing')
    expect(await look(changed(url, { search: '?sslmode=verify-full' }))).toMatch(/no encrypted connection to .* can be had/)
  })

  test('whose address cannot be read', async () => {
    const refused = async () => await look(`postgres://relay:${CANARY}@host:port:5432/relay`)
    await expect(refused).rejects.toThrow(
      /^store: the address of the database cannot be read\. Write postgres:\/\/user:password@host:5432\/database/,
    )
    await refused().catch((error: unknown) => expect(inspect(error)).not.toContain(CANARY))
  })
})
