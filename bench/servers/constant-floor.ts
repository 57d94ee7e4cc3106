import { readFileSync } from 'node:fs'
import Router from '@koa/router'
import Koa from 'koa'
import { announce } from './announce.ts'

/** The lower bound for reads on Koa: a route of the same shape that returns a constant body (the file named by the argument). */
const body = readFileSync(process.argv[2] ?? '')
const router = new Router()
router.get('/v1/status/:identifier/all', (ctx) => {
  ctx.body = body
  ctx.set('Content-Type', 'application/json')
})
announce(new Koa().use(router.routes()).listen(0, '127.0.0.1'))
