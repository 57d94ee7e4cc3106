import Koa from 'koa'
import getRawBody from 'raw-body'
import { WEBHOOK_PATH } from '../load/requests.ts'
import { announce } from './announce.ts'

/** What no Koa server that takes pushes can undercut: the body is read, and nothing is done with it. No router, as the relay's webhook has none. */
const app = new Koa()
app.use(async (ctx, next) => {
  if (ctx.method !== 'POST' || ctx.path !== WEBHOOK_PATH) return next()
  await getRawBody(ctx.req, { limit: 262_144 })
  ctx.body = null
  ctx.status = 200
})
announce(app.listen(0, '127.0.0.1'))
