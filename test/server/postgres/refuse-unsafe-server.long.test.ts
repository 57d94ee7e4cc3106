import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openPool } from '../../../src/server/postgres/postgres-pool.ts'
import { startOwnServer } from '../../support/store/postgres-database.ts'
import { CANARY, changed, refusalOf } from './refusal-of.ts'

// These cases change the settings of a whole server, so each starts one.

describe('S19: the start is refused with the reason', () => {
  test.each(['fsync', 'full_page_writes'])('on a server with %s off', async (setting) => {
    await using server = await startOwnServer({ settings: { [setting]: 'off' } })
    expect(await refusalOf(server.url())).toMatch(
      new RegExp(`^store: postgres://relay@127\\.0\\.0\\.1:\\d+/postgres: ${setting} is off, .*Write ${setting} = on`),
    )
  })

  test('on a standby', async () => {
    await using server = await startOwnServer()
    await server.stop()
    writeFileSync(join(server.folder, 'data', 'standby.signal'), '')
    await server.start()
    expect(await refusalOf(server.url())).toMatch(/: the server is a standby, .*Name the primary in `store`, or promote this server\.$/)
  })
})

describe('an unreachable database is named without its password', () => {
  test('if it has no connection left', async () => {
    await using server = await startOwnServer({ settings: { max_connections: '4', superuser_reserved_connections: '0' } })
    const taken = openPool(server.url(), { connectionsMax: 4, connectTimeoutMs: 5000, onConnectionLost: () => undefined })
    const held = await Promise.all([1, 2, 3, 4].map(() => taken.connect()))
    expect(await refusalOf(server.url())).toMatch(/has no connection left .*Raise the server's max_connections/)
    for (const client of held) client.release()
    await taken.end()
  })

  test('if nothing answers, or the host is unknown', async () => {
    await using server = await startOwnServer()
    await server.stop('immediate')
    const url = changed(server.url(), { password: CANARY })
    expect(await refusalOf(url)).toMatch(
      /^store: no PostgreSQL answers at postgres:\/\/relay@127\.0\.0\.1:\d+\/postgres \(nothing listens there\)\. Look at the host/,
    )
    expect(await refusalOf(changed(url, { hostname: 'nowhere.invalid' }))).toMatch(/the host of .* is not known here/)
    await server.start()
    expect(await refusalOf(server.url())).toBeNull()
  })

  // The driver leaves this connection open, and its database cannot be dropped meanwhile. So use a separate server.
  test('if it asks for a password, and there is none', async () => {
    await using server = await startOwnServer()
    expect(await refusalOf(changed(server.url(), { password: '' }))).toMatch(/asks for a password, and `store` names none/)
  })
})
