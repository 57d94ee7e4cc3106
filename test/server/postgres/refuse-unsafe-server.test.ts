import { createServer } from 'node:net'
import { inspect } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { faultsOf } from '../../../src/server/postgres/postgres-engine.ts'
import { listen } from '../../support/network/listen.ts'
import { withClient } from '../../support/store/postgres-client.ts'
import { createDatabase, sharedServer } from '../../support/store/postgres-database.ts'
import { CANARY, changed, refusalOf } from './refusal-of.ts'

test('a server with default settings is accepted', async () => {
  expect(await refusalOf((await createDatabase('nothing')).url)).toBeNull()
})

describe('S19: the start is refused with the reason', () => {
  test('on a database with synchronous_commit off', async () => {
    const { url, name } = await createDatabase('nothing')
    await withClient(await sharedServer(), (client) => client.query(`alter database ${name} set synchronous_commit = off`))
    expect(await refusalOf(url)).toMatch(
      /: synchronous_commit is off, .*Write synchronous_commit = on .*ALTER DATABASE \.\.\. RESET synchronous_commit/,
    )
  })

  test('on a database with default_transaction_read_only on', async () => {
    const { url, name } = await createDatabase('nothing')
    await withClient(await sharedServer(), (client) => client.query(`alter database ${name} set default_transaction_read_only = on`))
    expect(await refusalOf(url)).toMatch(
      /: default_transaction_read_only is on, .*ALTER DATABASE \.\.\. RESET default_transaction_read_only/,
    )
  })

  test('on a database with another encoding', async () => {
    expect(await refusalOf((await createDatabase('nothing, in SQL_ASCII')).url)).toMatch(
      /: the encoding of the database is SQL_ASCII, .*CREATE DATABASE \.\.\. ENCODING 'UTF8'/,
    )
  })

  test('on PostgreSQL before 15, and names all other faults too', () => {
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

describe('an unreachable database is named without its password', () => {
  test('if it does not accept the password', async () => {
    const { url, name } = await createDatabase('nothing')
    const refusal = await refusalOf(changed(url, { password: CANARY }))
    expect(refusal).toMatch(new RegExp(`^store: postgres://relay@127\\.0\\.0\\.1:\\d+/${name} does not accept the user's password\\.`))
  })

  test('if it does not exist', async () => {
    const url = changed(await sharedServer(), { pathname: '/nowhere' })
    expect(await refusalOf(url)).toMatch(
      /^store: there is no such database at .*\/nowhere \(database "nowhere" does not exist\)\. Make it \(CREATE DATABASE/,
    )
  })

  test('if its user may not connect', async () => {
    const { url, name } = await createDatabase('nothing')
    const role = `${name}_user`
    const server = await sharedServer()
    await withClient(server, (client) =>
      client.query(`create role ${role} login password '${CANARY}'; revoke connect on database ${name} from public`),
    )
    onTestFinished(() => withClient(server, async (client) => void (await client.query(`drop role ${role}`))))
    const as = (user: string) => changed(url, { username: user, password: CANARY })
    expect(await refusalOf(as(role))).toMatch(/the user may not use .*GRANT CONNECT ON DATABASE/)
    expect(await refusalOf(as('nobody_at_all'))).toMatch(/does not accept the user's password/)
  })

  test('if something accepts the connection and stays silent', async () => {
    const silent = createServer(() => undefined)
    onTestFinished(() => void silent.close())
    expect(await refusalOf(`postgres://relay:${CANARY}@127.0.0.1:${await listen(silent)}/relay`, 50)).toMatch(
      /^store: no PostgreSQL answers at/,
    )
  })

  test('if the connection must be encrypted, and the server cannot do that', async () => {
    const { url } = await createDatabase('nothing')
    expect(await refusalOf(changed(url, { search: '?sslmode=verify-full' }))).toMatch(/no encrypted connection to .* can be made/)
  })

  test('if its address cannot be read', async () => {
    const refused = async () => await refusalOf(`postgres://relay:${CANARY}@host:port:5432/relay`)
    await expect(refused).rejects.toThrow(
      /^store: the address of the database cannot be read\. Write postgres:\/\/user:password@host:5432\/database/,
    )
    await refused().catch((error: unknown) => expect(inspect(error)).not.toContain(CANARY))
  })
})
