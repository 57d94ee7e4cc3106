import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject, onTestFinished } from 'vitest'
import { type PostgresOptions, type PostgresServer, startPostgres } from '../../../src/trial/demo/postgres/throwaway-server.ts'
import { addressOf, TEMPLATE } from './postgres-client.ts'

/** Returns the URL of the server that all tests share. The first call starts it. */
export async function sharedServer(): Promise<string> {
  return await askAtDoor('/server')
}

/** Starts a server for a test that stops, starves or breaks it. The caller disposes of the server. */
export async function startOwnServer(options: Omit<PostgresOptions, 'initial'> = {}): Promise<PostgresServer> {
  return await startPostgres({ ...options, initial: await askAtDoor('/initial') })
}

async function askAtDoor(path: string): Promise<string> {
  const answer = await fetch(inject('postgresDoor') + path)
  const text = await answer.text()
  if (!answer.ok) throw new Error(text)
  return text
}

let keeper: pg.Pool | null = null

/** Uses one connection for all databases of this process, because starting a connection takes longer than copying a database. */
async function onServer(server: string, statement: string, values: readonly unknown[] = []): Promise<void> {
  keeper ??= openKeeper(server)
  await keeper.query(statement, [...values])
}

function openKeeper(server: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: server, max: 1, idleTimeoutMillis: 0, allowExitOnIdle: true })
  // A test that cuts off all connections cuts off this one too. Then the next statement opens another.
  pool.on('error', () => undefined)
  return pool
}

/** Creates a database for one test on the shared server, with the current schema unless it is to be empty. It is dropped after the test. */
export async function createDatabase(
  holding: 'the schema' | 'nothing' | 'nothing, in SQL_ASCII' = 'the schema',
): Promise<{ readonly url: string; readonly name: string }> {
  const { drop, ...database } = await make(MADE[holding])
  onTestFinished(drop)
  return database
}

/** Creates a database that stays as long as the server, for several tests to copy. Returns its URL. */
export async function createLastingDatabase(): Promise<string> {
  return (await make(MADE['the schema'])).url
}

/** Works on a database that is dropped afterwards, for tests with many cases. */
export async function withDatabase<T>(work: (url: string) => Promise<T>): Promise<T> {
  const { url, drop } = await make(MADE['the schema'])
  try {
    return await work(url)
  } finally {
    await drop()
  }
}

/** Copies a database, which cuts off everybody who is connected to it. Returns the URL of the copy. */
export async function copyDatabase(url: string): Promise<string> {
  const original = new URL(url).pathname.slice(1)
  await onServer(await sharedServer(), 'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [original])
  const { url: copy, drop } = await make(`template ${original} ${AS_FILES}`)
  onTestFinished(drop)
  return copy
}

async function make(how: string): Promise<{ readonly url: string; readonly name: string; drop(): Promise<void> }> {
  const name = `test_${randomBytes(6).toString('hex')}`
  const server = await sharedServer()
  await onServer(server, `create database ${name} ${how}`)
  return { url: addressOf(server, name), name, drop: () => onServer(server, `drop database ${name} with (force)`) }
}

/** Copies a template's files as they are. Otherwise each page goes through the write-ahead log, which takes three times as long. */
const AS_FILES = 'strategy file_copy'

const MADE = {
  'the schema': `template ${TEMPLATE} ${AS_FILES}`,
  nothing: `template template0 ${AS_FILES}`,
  'nothing, in SQL_ASCII': `template template0 encoding 'SQL_ASCII' locale 'C' locale_provider libc ${AS_FILES}`,
}
