import Koa from 'koa'
import getRawBody from 'raw-body'
import { WEBHOOK_PATH } from '../load/requests.ts'
import { announce } from './announce.ts'

/** `raw-body-route` without a router, because the relay's webhook has none either. */
const app = new Koa()
app.use(async (ctx, next) => {
  if (ctx.method !== 'POST' || ctx.path !== WEBHOOK_PATH) return next()
  await getRawBody(ctx.req, { limit: 262_144 })
  ctx.body = null
  ctx.status = 200
})
announce(app.listen(0, '127.0.0.1'))
