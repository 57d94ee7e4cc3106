import { statfsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import type { TestProject } from 'vitest/node'
import { migratePostgres } from '../../../src/server/postgres/postgres-migrate.ts'
import { openPool } from '../../../src/server/postgres/postgres-pool.ts'
import { makeInitialData, type PostgresServer, startPostgres } from '../../../src/trial/demo/postgres/throwaway-server.ts'
import { TEMPLATE, withClient } from '../store/postgres-client.ts'

/**
 * Provides one server for all test files. It is started for the first test that needs it. Also provides a data folder, which servers of single
 * tests copy. Both belong to the main process of Vitest, so they outlive test files.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  let started: Promise<PostgresServer> | null = null
  let initial: ReturnType<typeof makeInitialData> | null = null
  const initialPath = () => {
    initial ??= makeInitialData(folderWithRoom())
    return initial.path
  }
  const answers = {
    '/server': async () => {
      started ??= startWithTemplate(initialPath())
      return (await started).url()
    },
    '/initial': async () => initialPath(),
  }
  const door = createServer((request, response) => {
    // Use a connection per request: this side might close a kept connection just when a busy worker uses it again.
    response.setHeader('connection', 'close')
    answers[request.url === '/initial' ? '/initial' : '/server']().then(
      (text) => response.end(text),
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
  })
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve))
  // A server that listens on a port has an address of this form.
  const { port } = door.address() as AddressInfo
  project.provide('postgresDoor', `http://127.0.0.1:${port}`)
  return async () => {
    door.closeAllConnections()
    door.close()
    const server = await started?.catch(() => null)
    await server?.[Symbol.asyncDispose]()
    await initial?.remove()
  }
}

async function startWithTemplate(initial: string): Promise<PostgresServer> {
  // Several files run at once, and each may start several relays.
  const server = await startPostgres({ settings: { max_connections: '300' }, parent: folderWithRoom(), initial })
  await withClient(server.url(), (client) => client.query(`create database ${TEMPLATE} template template0`))
  const pool = openPool(server.url(TEMPLATE), { connectionsMax: 1, connectTimeoutMs: 60_000, onConnectionLost: () => undefined })
  await migratePostgres(pool, TEMPLATE)
  await pool.end()
  return server
}

const IN_MEMORY = '/dev/shm'
const ROOM_BYTES = 2 ** 31

/** Prefers memory, where a database is made in a quarter of the time. Tests that need a real disk start their own servers. */
function folderWithRoom(): string {
  try {
    const { bavail, bsize } = statfsSync(IN_MEMORY)
    return bavail * bsize >= ROOM_BYTES ? IN_MEMORY : tmpdir()
  } catch {
    return tmpdir()
  }
}

declare module 'vitest' {
  export interface ProvidedContext {
    postgresDoor: string
  }
}
