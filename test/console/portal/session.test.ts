import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import Koa from 'koa'
import { afterEach, expect, test } from 'vitest'
import { createSessions } from '../../../src/console/portal/session.ts'
import { closeOpened, openHttp } from '../../core/carrier/carrier-double.ts'

afterEach(closeOpened)

/** Every session is due for renewal. */
function open() {
  return createSessions({
    authenticate: {
      continueSession: async () => ({
        id: 'of-anna',
        app: { username: 'anna', passwordHashes: [''], scopes: ['status'] },
        renewed: 'renewed',
      }),
      issueToken: async () => '',
      endSession: async () => undefined,
      hold: async () => () => undefined,
    },
    relayId: '0123456789abcdef',
    settings: () => ({ trustedHeader: null, admins: [], prefix: '', isSecure: false }),
    isFromProxy: () => false,
  })
}

/** Starts a server that looks up the session of each request. A request to `/use` counts as use by a person. */
async function start(): Promise<string> {
  const sessions = open()
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

test('what is limited per session counts all its tokens as one', async () => {
  const sessions = open()
  const held = await Promise.all(
    ['first', 'renewed'].map(async (token) => {
      const request = new IncomingMessage(new Socket())
      request.rawHeaders.push('Cookie', `parcel-relay-01234567=${token}`)
      const ctx = new Koa().createContext(request, new ServerResponse(request))
      return await sessions.hold(ctx, { name: 'anna', scope: 'status', isFromProxy: false })
    }),
  )
  expect(held.map(({ session }) => session)).toEqual(['of-anna', 'of-anna'])
})
