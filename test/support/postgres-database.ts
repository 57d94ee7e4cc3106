import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject, onTestFinished } from 'vitest'
import { addressOf, TEMPLATE } from './postgres-client.ts'

let server: Promise<string> | null = null

/** Returns the URL of the server that all tests share. The first call starts it. */
export function sharedServer(): Promise<string> {
  server ??= askForServer()
  return server
}

async function askForServer(): Promise<string> {
  const answer = await fetch(inject('postgresDoor'))
  const text = await answer.text()
  if (!answer.ok) throw new Error(text)
  return text
}

let keeper: Promise<pg.Pool> | null = null

/** One connection for all that this process makes and drops: the server takes longer to start one than to copy a database. */
async function onServer(statement: string, values: readonly unknown[] = []): Promise<void> {
  keeper ??= openKeeper()
  await (await keeper).query(statement, [...values])
}

async function openKeeper(): Promise<pg.Pool> {
  const pool = new pg.Pool({ connectionString: await sharedServer(), max: 1, idleTimeoutMillis: 0, allowExitOnIdle: true })
  // Whoever cuts off everybody cuts off this one too; the next statement gets another.
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

/** Creates one that stays as long as the server: several tests copy it. Returns its URL. */
export async function createLastingDatabase(): Promise<string> {
  return (await make(MADE['the schema'])).url
}

/** Does something with a database that is gone afterwards: of many cases in one test. */
export async function withDatabase<T>(work: (url: string) => Promise<T>): Promise<T> {
  const { url, drop } = await make(MADE['the schema'])
  try {
    return await work(url)
  } finally {
    await drop()
  }
}

/** Another that holds the same; whoever is connected to the first is cut off. */
export async function copyDatabase(url: string): Promise<string> {
  const original = new URL(url).pathname.slice(1)
  await onServer('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [original])
  const { url: copy, drop } = await make(`template ${original} ${AS_FILES}`)
  onTestFinished(drop)
  return copy
}

async function make(how: string): Promise<{ readonly url: string; readonly name: string; drop(): Promise<void> }> {
  const name = `test_${randomBytes(6).toString('hex')}`
  await onServer(`create database ${name} ${how}`)
  return { url: addressOf(await sharedServer(), name), name, drop: () => onServer(`drop database ${name} with (force)`) }
}

/** A template's files are copied as they are: without this each of their pages goes through the log, which takes three times as long. */
const AS_FILES = 'strategy file_copy'

const MADE = {
  'the schema': `template ${TEMPLATE} ${AS_FILES}`,
  nothing: `template template0 ${AS_FILES}`,
  'nothing, in SQL_ASCII': `template template0 encoding 'SQL_ASCII' locale 'C' locale_provider libc ${AS_FILES}`,
}
