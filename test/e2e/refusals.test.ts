import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { createVisitor } from '../support/portal/portal-visitor.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push, SHARED_KEY } from '../support/relay/relay.ts'
import { relayOfFile } from '../support/relay/relay-of-file.ts'

const ofFile = relayOfFile('http://127.0.0.1:9')

const BODY = '{"status":"Ingested","detailedStatus":"Ingested"}'

/**
 * Pushes repeatedly until the relay explains a refused push by its body. It explains at most one push a second, and does not read the body of every
 * push that it refuses.
 */
async function untilExplained(body: string, signature: string, found: string) {
  const operator = await operatorOf(ofFile())
  const listed = async () => (await operator('GET', '/relay/refusals?limit=5')).body
  await expect
    .poll(async () => {
      expect((await push(ofFile().publicUrl, body, { 'x-service-hmac-sha256': signature, 'user-agent': 'odd-sender/1' })).status).toBe(401)
      return await listed()
    })
    .toMatchObject({
      refusals: expect.arrayContaining([
        expect.objectContaining({ body: expect.anything(), causes: [expect.objectContaining({ code: found })] }),
      ]),
    })
  return await listed()
}

test('a push signed in hexadecimal is explained in the API, the portal and the metrics', async () => {
  const signature = createHmac('sha256', SHARED_KEY).update(BODY).digest('hex')
  const body = await untilExplained(BODY, signature, 'signature_hex')
  expect(body).toMatchObject({
    refusals: expect.arrayContaining([
      {
        id: expect.any(String),
        at: expect.any(String),
        address: '127.0.0.1',
        explained: true,
        causes: [{ code: 'signature_hex', detail: null, explanation: expect.stringContaining('hexadecimal') }],
        key: 'webhook.sharedKeys[0]',
        cutShort: false,
        headers: expect.objectContaining({ 'user-agent': 'odd-sender/1', 'content-length': String(BODY.length) }),
        body: { bytes: BODY.length, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
      },
    ]),
  })
  for (const secret of [SHARED_KEY, signature, 'Ingested']) expect(JSON.stringify(body)).not.toContain(secret)
  const visitor = createVisitor(ofFile().internalUrl)
  await visitor.logIn()
  const page = (await visitor.get('/inbox/refusals')).text
  for (const shown of ['written in hexadecimal', 'webhook.sharedKeys[0]', 'odd-sender/1']) expect(page).toContain(shown)
  expect((await visitor.get('/inbox/refusals?cursor=x')).status).toBe(404)
  expect(await (await fetch(`${ofFile().internalUrl}/metrics`)).text()).toMatch(
    /relay_refusals_explained_total\{cause="signature_hex"\} [1-9]/,
  )
})

test('a push whose signature fits a changed body is explained by that change', async () => {
  const signature = createHmac('sha256', SHARED_KEY).update(`${BODY}\n`).digest('base64')
  await untilExplained(BODY, signature, 'body_trailing_newline')
})
