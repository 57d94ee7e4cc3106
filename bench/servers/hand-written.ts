import { createHmac, timingSafeEqual } from 'node:crypto'
import Database from 'better-sqlite3'
import Koa from 'koa'
import { type Generated, Kysely, SqliteDialect } from 'kysely'
import getRawBody from 'raw-body'
import { WEBHOOK_PATH } from '../load/requests.ts'
import { announce } from './announce.ts'

interface Tables {
  readonly push: { readonly id: Generated<number>; readonly received_at_ms: number; readonly body: Buffer }
}

/** A simple handler that is as durable as the relay: it verifies the signature and commits a transaction per push. */
const [, , path = '', sharedKey = ''] = process.argv
const database = new Database(path)
database.pragma('journal_mode = WAL')
database.pragma('synchronous = FULL')
const db = new Kysely<Tables>({ dialect: new SqliteDialect({ database }) })
await db.schema
  .createTable('push')
  .addColumn('id', 'integer', (column) => column.primaryKey())
  .addColumn('received_at_ms', 'integer', (column) => column.notNull())
  .addColumn('body', 'blob', (column) => column.notNull())
  .execute()

const app = new Koa()
app.use(async (ctx, next) => {
  if (ctx.method !== 'POST' || ctx.path !== WEBHOOK_PATH) return next()
  const body = Buffer.from(await getRawBody(ctx.req, { limit: 262_144 }))
  const given = Buffer.from(ctx.get('x-service-hmac-sha256'), 'base64')
  const right = createHmac('sha256', sharedKey).update(body).digest()
  if (given.length !== right.length || !timingSafeEqual(given, right)) return ctx.throw(401)
  await db.transaction().execute((tx) => tx.insertInto('push').values({ received_at_ms: Date.now(), body }).execute())
  ctx.body = null
  ctx.status = 200
})
announce(app.listen(0, '127.0.0.1'))
