import { randomBytes } from 'node:crypto'
import { inject, onTestFinished } from 'vitest'
import { addressOf, TEMPLATE, withClient } from './postgres-client.ts'

/** The address of the server that all tests share; it is started when the first asks. */
export async function sharedServer(): Promise<string> {
  const answer = await fetch(inject('postgresDoor'))
  const text = await answer.text()
  if (!answer.ok) throw new Error(text)
  return text
}

/** A database of a test's own on the shared server, with the schema of this version unless it is to be empty; gone when the test is. */
export async function createDatabase(
  holding: 'the schema' | 'nothing' | 'nothing, in SQL_ASCII' = 'the schema',
): Promise<{ readonly url: string; readonly name: string }> {
  const server = await sharedServer()
  const name = `test_${randomBytes(6).toString('hex')}`
  await withClient(server, (client) => client.query(`create database ${name} ${MADE[holding]}`))
  onTestFinished(async () => {
    await withClient(server, (client) => client.query(`drop database ${name} with (force)`))
  })
  return { url: addressOf(server, name), name }
}

const MADE = {
  'the schema': `template ${TEMPLATE}`,
  nothing: 'template template0',
  'nothing, in SQL_ASCII': "template template0 encoding 'SQL_ASCII' locale 'C' locale_provider libc",
}
