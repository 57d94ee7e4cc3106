import Database from 'better-sqlite3'
import Koa from 'koa'
import getRawBody from 'raw-body'
import { createVerifier } from '../../src/core/domain/ingest/signature.ts'
import { WEBHOOK_PATH } from '../load/requests.ts'
import { announce } from './announce.ts'

/**
 * The least that a Koa server must do to answer 200 only for durable pushes: it verifies the signature, inserts, and syncs once per turn of the
 * event loop, on one thread. It does not parse events, so it neither merges nor serves them.
 */
const [, , path = '', sharedKey = ''] = process.argv
const database = new Database(path)
database.pragma('journal_mode = WAL')
database.pragma('synchronous = FULL')
database.exec('CREATE TABLE push (id INTEGER PRIMARY KEY, received_at_ms INTEGER NOT NULL, body BLOB NOT NULL)')
const insert = database.prepare('INSERT INTO push (received_at_ms, body) VALUES (?, ?)')
const insertAll = database.transaction((bodies: readonly Buffer[]) => {
  for (const body of bodies) insert.run(Date.now(), body)
})
const verifier = createVerifier([sharedKey])
let came: { readonly body: Buffer; readonly answer: () => void }[] = []

function commit(): void {
  const batch = came
  came = []
  insertAll(batch.map(({ body }) => body))
  for (const { answer } of batch) answer()
}

const app = new Koa()
app.use(async (ctx, next) => {
  if (ctx.method !== 'POST' || ctx.path !== WEBHOOK_PATH) return next()
  const body = Buffer.from(await getRawBody(ctx.req, { limit: 262_144 }))
  if (verifier.verify(body, ctx.get('x-service-hmac-sha256')) === null) return ctx.throw(401)
  await new Promise<void>((answer) => {
    if (came.length === 0) setImmediate(commit)
    came.push({ body, answer })
  })
  ctx.body = null
  ctx.status = 200
})
announce(app.listen(0, '127.0.0.1'))
