import Koa from 'koa'
import { afterEach, expect, test } from 'vitest'
import { createSessions } from '../../../src/http/portal/session.ts'
import { closeOpened, openHttp } from '../../carrier/carrier-double.ts'

afterEach(closeOpened)

/** Starts a server that looks up the session of each request. A request to `/use` counts as use by a person. Every session is due for renewal. */
async function start(): Promise<string> {
  const sessions = createSessions({
    authenticate: {
      continueSession: async () => ({ app: { username: 'anna', passwordHashes: [''], scopes: ['status'] }, renewed: 'renewed' }),
      issueToken: async () => '',
      endSession: async () => undefined,
      hold: async () => () => undefined,
    },
    relayId: '0123456789abcdef',
    settings: () => ({ trustedHeader: null, admins: [], prefix: '', isSecure: false }),
    isFromProxy: () => false,
  })
  const app = new Koa()
  app.use(async (ctx) => {
    ctx.body = (await sessions.personOf(ctx, ctx.path === '/use'))?.name
  })
  const handle = app.callback()
  return await openHttp((request, response) => void handle(request, response))
}

test('a session is renewed by use, but not by a page that updates itself', async () => {
  const url = await start()
  const ask = async (path: string) => {
    const answer = await fetch(`${url}${path}`, { headers: { cookie: 'parcel-relay-01234567=token' } })
    return [await answer.text(), answer.headers.get('set-cookie')]
  }
  expect(await ask('/use')).toEqual(['anna', 'parcel-relay-01234567=renewed; Path=/; HttpOnly; SameSite=Lax'])
  expect(await ask('/live')).toEqual(['anna', null])
})
