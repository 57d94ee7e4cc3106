import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { ROUTES } from '../../src/http/routes.ts'
import { closeOpened, openCarrier } from '../carrier/carrier-double.ts'
import { fetchDocumented } from '../support/api-document.ts'
import { pushBody } from '../support/builders.ts'
import { nameOf, requestOf } from '../support/internal-routes.ts'
import { ADMIN, logIn, push, startTestRelay } from '../support/relay.ts'
import { temporaryFolder } from '../support/temporary.ts'

afterAll(closeOpened)

test('GET /openapi.json is docs/openapi.json, and needs no token', async () => {
  const relay = await startTestRelay(temporaryFolder(), 'http://127.0.0.1:9')
  onTestFinished(() => relay.stop())
  const answer = await fetchDocumented(`${relay.internalUrl}/openapi.json`)
  expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([
    200,
    'application/json',
    readFileSync('docs/openapi.json', 'utf8'),
  ])
})

/** What no relay can do in this process: there is no job, and it cannot move its store. */
const REFUSED: Readonly<Record<string, number>> = {
  'GET /relay/jobs/:id': 404,
  'DELETE /relay/jobs/:id': 404,
  'POST /relay/store/move': 409,
}

test("each row's example, sent to a running relay, is answered as documented, with a 2xx wherever it can be", async () => {
  const carrier = await openCarrier()
  const relay = await startTestRelay(temporaryFolder(), carrier.url, {
    poll: { cron: '0 0 1 1 *' },
    delivery: { allowNetworks: ['127.0.0.0/8'] },
  })
  onTestFinished(() => relay.stop())
  const refusing = createServer((_request, response) => response.writeHead(500).end('not today'))
  await new Promise<void>((resolve) => refusing.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void refusing.close())
  const address = refusing.address()
  const token = await logIn(relay.internalUrl, ADMIN)
  const ask = (method: string, path: string, body: string | null, type: string) =>
    fetchDocumented(`${relay.internalUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body === null ? {} : { 'content-type': type }) },
      body,
    })
  const shop = { name: 'shop', url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/` }
  expect((await ask('POST', '/relay/endpoints', JSON.stringify(shop), 'application/json')).status).toBe(201)
  // The examples are about this parcel, its delivery, which waits, and a push in quarantine.
  await push(relay.publicUrl, pushBody({ trackingIds: ['AB123456789SE'] }))
  await push(relay.publicUrl, 'no event')
  await expect.poll(async () => await (await ask('GET', '/relay/deliveries/1', null, '')).text()).toContain('"state":"retrying"')

  const removals = ROUTES.filter(({ method }) => method === 'delete')
  const answers: unknown[] = []
  const inOrder = [...ROUTES.filter((row) => !removals.includes(row)), ...removals]
  for (const row of inOrder) {
    const { method, path, type, body } = requestOf(nameOf(row))
    const answer = row.listener === 'public' ? await push(relay.publicUrl, body ?? '') : await ask(method, path, body, type)
    answers.push([nameOf(row), answer.ok || answer.status])
  }
  expect(answers).toEqual(inOrder.map((row) => [nameOf(row), REFUSED[nameOf(row)] ?? true]))
})
