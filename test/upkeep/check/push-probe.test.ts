import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { isCheckPush } from '../../../src/core/domain/ingest/parse-push.ts'
import { createVerifier } from '../../../src/core/domain/ingest/signature.ts'
import { pushProbe } from '../../../src/upkeep/check/outbound-probes.ts'
import { listenInTest } from '../../support/network/listen.ts'

const KEY = 'a-shared-key-of-some-length'

test('a check’s push to the relay itself is signed and marked, and any answer but 200 is red', async () => {
  const bodies: Buffer[] = []
  let status = 200
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const body = Buffer.concat(parts)
      bodies.push(body)
      const isSigned = createVerifier([KEY]).verify(body, String(request.headers['x-service-hmac-sha256'])) === 0
      response.writeHead(isSigned && request.url === '/hooks' ? status : 400).end()
    })
  })
  const port = await listenInTest(server)
  const { look } = pushProbe(() => ({ publicUrl: `http://0.0.0.0:${port}`, path: '/hooks', key: KEY }))
  expect(await look()).toMatchObject({ state: 'ok' })
  expect(bodies.every(isCheckPush)).toBe(true)
  status = 401
  expect(await look()).toEqual({ state: 'failed', message: 'A signed push to this relay is answered with 401.' })
})

test('a public listener that does not answer is red', async () => {
  const { look } = pushProbe(() => ({ publicUrl: 'http://127.0.0.1:9', path: '/hooks', key: KEY }))
  expect(await look()).toEqual({ state: 'failed', message: expect.stringContaining('does not answer this machine') })
})
