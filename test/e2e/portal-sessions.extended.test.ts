import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { cookiesIn, follow } from '../support/portal/live-stream.ts'
import { createVisitor, loggedInAt } from '../support/portal/portal-visitor.ts'
import { ask, logIn, push, SHOP } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'

/** Logs in, and copies the cookie to a second visitor, as somebody might who has read it. */
async function withCopy(url: string) {
  const visitor = await loggedInAt(url)
  const copy = createVisitor(url)
  for (const [name, value] of visitor.jar) copy.jar.set(name, value)
  return { visitor, copy }
}

test('a session that was logged out is over for a copied cookie too, after a restart as well', async () => {
  const relay = await relayOfTest()
  const { visitor, copy } = await withCopy(relay.internalUrl)
  const stream = await follow(relay.internalUrl, '/', { headers: { cookie: cookiesIn(copy.jar) } })
  expect((await copy.get('/webhooks')).status).toBe(200)
  expect((await visitor.post('/logout')).headers.get('location')).toBe('/login')
  expect((await copy.get('/webhooks')).status).not.toBe(200)
  await stream.ended
  await relay.stop()
  const again = await relayOfTest({}, { folder: relay.folder })
  const late = createVisitor(again.internalUrl)
  for (const [name, value] of copy.jar) late.jar.set(name, value)
  expect((await late.get('/webhooks')).status).not.toBe(200)
})

test('of two cookies with the name of the session, the valid one counts, wherever it stands', async () => {
  const { internalUrl } = await relayOfTest()
  const visitor = await loggedInAt(internalUrl)
  const [name = '', session = ''] = [...visitor.jar.entries()][0] ?? []
  for (const values of [
    ['old', session],
    [session, 'old'],
  ])
    expect((await visitor.get('/webhooks', { cookie: values.map((value) => `${name}=${value}`).join('; ') })).status).toBe(200)
})

test('a proxy may name a person in UTF-8, and the page says that it logs people in again', async () => {
  const { internalUrl } = await relayOfTest({
    listen: { public: { host: '127.0.0.1', port: 0 }, internal: { host: '127.0.0.1', port: 0, trustProxy: ['127.0.0.0/8'] } },
    portal: { trustedHeader: 'X-User', admins: ['Åsa Öberg'] },
  })
  const name = Buffer.from('Åsa Öberg').toString('latin1')
  const visitor = createVisitor(internalUrl, { 'x-user': name })
  const { text } = await visitor.get('/settings')
  expect(text).toContain('Åsa Öberg')
  expect(text).toContain('Your proxy logs you in')
})

test('the scope status is enough to read parcels', async () => {
  const relay = await relayOfTest()
  await push(relay.publicUrl, pushBody({ trackingIds: ['1001'] }))
  const token = await logIn(relay.internalUrl, SHOP)
  for (const path of ['/relay/parcels', '/relay/parcels/1001']) expect((await ask(relay.internalUrl, token, path)).status).toBe(200)
})
