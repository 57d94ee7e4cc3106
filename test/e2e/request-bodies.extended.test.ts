import { expect, test } from 'vitest'
import { fetchDocumented } from '../support/portal/api-document.ts'
import { ADMIN, logIn } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'

test('an unusable body is refused with a reason that quotes no part of the body', async () => {
  const relay = await relayOfTest()
  const token = await logIn(relay.internalUrl, ADMIN)
  const send = async (body: string | undefined, type = 'application/json') => {
    const answer = await fetchDocumented(`${relay.internalUrl}/relay/endpoints`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': type }) },
      ...(body === undefined ? {} : { body }),
    })
    return [answer.status, JSON.parse(await answer.text()).detail]
  }
  const url = 'http://shop.internal/x'
  expect([
    await send('{"sharedKey": "secret-secret-secret",}'),
    await send('[]'),
    await send('7'),
    await send('{"__proto__": 1}'),
    await send('{"name": "shop", "headers": {"a": "1", "__proto__": "x"}}'),
    await send('name=x', 'application/x-www-form-urlencoded'),
    await send(undefined),
    await send(JSON.stringify({ name: 'shop', url: 'nonsense' })),
    await send(JSON.stringify({ name: 'shop', url: 'ftp://shop' })),
    await send(JSON.stringify({ name: 'shop', url: 'http://me:secret@shop' })),
    await send(JSON.stringify({ name: 'shop', url, from: 'later' })),
    await send(JSON.stringify({ name: 'shop', url: 'http://169.254.169.254/' })),
  ]).toEqual([
    [400, 'The body is not valid JSON: look at line 1, column 38.'],
    [400, 'The body must be a JSON object.'],
    [400, 'The body must be a JSON object.'],
    [400, 'The body must not have a member "__proto__".'],
    [400, 'The body must not have a member "__proto__".'],
    [400, 'The body must be JSON, with Content-Type: application/json.'],
    [400, 'The body is missing: it must be a JSON object.'],
    [400, 'url must be a complete URL such as https://shop.internal/parcel-events.'],
    [400, 'url must begin with http:// or https://.'],
    [400, 'url must not contain a user name or password.'],
    [400, 'from must be "now", or a sequence of the feed to start with.'],
    [400, 'url leads to an address that may not be sent to (link local): see delivery.allowNetworks.'],
  ])
})
