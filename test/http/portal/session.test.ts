import Koa from 'koa'
import { afterEach, expect, test } from 'vitest'
import { createSessions } from '../../../src/http/portal/session.ts'
import { closeOpened, openHttp } from '../../carrier/carrier-double.ts'

afterEach(closeOpened)

/** A server that looks who asks; at `/use` as if a person did it. Each session it is shown is due to be renewed. */
async function start(): Promise<string> {
  const sessions = createSessions({
    authenticate: {
      continueSession: async () => ({ app: { username: 'anna', passwordHashes: [''], scopes: ['status'] }, renewed: 'renewed' }),
      issueToken: async () => '',
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

test('a session is renewed by use, and not by a page that keeps itself up to date', async () => {
  const url = await start()
  const ask = async (path: string) => {
    const answer = await fetch(`${url}${path}`, { headers: { cookie: 'parcel-relay-01234567=token' } })
    return [await answer.text(), answer.headers.get('set-cookie')]
  }
  expect(await ask('/use')).toEqual(['anna', 'parcel-relay-01234567=renewed; Path=/; HttpOnly; SameSite=Lax'])
  expect(await ask('/live')).toEqual(['anna', null])
})
