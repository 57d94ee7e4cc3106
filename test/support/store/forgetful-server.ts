import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { PostgresServer } from '../../../src/trial/demo/postgres/throwaway-server.ts'
import { withClient } from './postgres-client.ts'
import { startOwnServer } from './postgres-database.ts'

/** A server that other test files do not share. Its state can be saved, and restored without the commits after that. */
export interface ForgetfulServer extends PostgresServer {
  /** Makes an empty database and returns its URL. */
  newDatabase(): Promise<string>
  /** Saves its state. This restarts the server. `immediate`: saves the state as after a crash. */
  keep(how?: 'fast' | 'immediate'): Promise<void>
  /** Loses everything committed since the state was saved, as in a failover. */
  lose(): Promise<void>
}

export async function startForgetful(): Promise<ForgetfulServer> {
  const server = await startOwnServer()
  const [data, kept] = [join(server.folder, 'data'), join(server.folder, 'kept')]
  const copy = (from: string, to: string) => {
    execFileSync('rm', ['-rf', to])
    execFileSync('cp', ['-a', from, to])
  }
  let databases = 0
  return {
    ...server,
    async newDatabase() {
      databases += 1
      const name = `of_test_${databases}`
      await withClient(server.url(), (client) => client.query(`create database ${name} template template0`))
      return server.url(name)
    },
    async keep(how = 'fast') {
      await server.stop(how)
      copy(data, kept)
      await server.start()
    },
    async lose() {
      await server.stop('immediate')
      copy(kept, data)
      await server.start()
    },
  }
}
