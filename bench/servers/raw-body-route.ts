import Router from '@koa/router'
import Koa from 'koa'
import getRawBody from 'raw-body'
import { WEBHOOK_PATH } from '../load/requests.ts'
import { announce } from './announce.ts'

/** The least that a push can cost on Koa: a route that reads the body and ignores it. */
const router = new Router()
router.post(WEBHOOK_PATH, async (ctx) => {
  await getRawBody(ctx.req, { limit: 262_144 })
  ctx.body = null
  ctx.status = 200
})
announce(new Koa().use(router.routes()).listen(0, '127.0.0.1'))
