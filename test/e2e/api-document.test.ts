import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { promisify } from 'node:util'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { CAPABILITIES, ROUTES } from '../../src/http/routes.ts'
import { closeOpened, openCarrier } from '../carrier/carrier-double.ts'
import { fetchDocumented } from '../support/api-document.ts'
import { pushBody } from '../support/builders.ts'
import { nameOf, requestOf } from '../support/internal-routes.ts'
import { ADMIN, logIn, push, SHARED_KEY, startTestRelay } from '../support/relay.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { testWith } from '../support/test-with.ts'

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

/** A relay that has what the examples are about: a parcel, its delivery, which waits, and a push in quarantine. */
async function startWithExamples() {
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
  await push(relay.publicUrl, pushBody({ trackingIds: ['AB123456789SE'] }))
  await push(relay.publicUrl, 'no event')
  await expect.poll(async () => await (await ask('GET', '/relay/deliveries/1', null, '')).text()).toContain('"state":"retrying"')
  return { ...relay, ask }
}

const removals = ROUTES.filter(({ method }) => method === 'delete')
const inOrder = [...ROUTES.filter((row) => !removals.includes(row)), ...removals]

test("each row's example, sent to a running relay, is answered as documented, with a 2xx wherever it can be", async () => {
  const { publicUrl, ask } = await startWithExamples()
  const answers: unknown[] = []
  for (const row of inOrder) {
    const { method, path, type, body } = requestOf(nameOf(row))
    const answer = row.listener === 'public' ? await push(publicUrl, body ?? '') : await ask(method, path, body, type)
    answers.push([nameOf(row), answer.ok || answer.status])
  }
  expect(answers).toEqual(inOrder.map((row) => [nameOf(row), REFUSED[nameOf(row)] ?? true]))
})

testWith(
  'bash',
  'curl',
  'openssl',
)('each curl line of /docs works in a shell', async () => {
  const { publicUrl, internalUrl } = await startWithExamples()
  const page = await (await fetch(`${internalUrl}/docs`)).text()
  const [prelude = '', ...lines] = [...page.matchAll(/<pre>([^<]*)<\/pre>/g)].map(([, text = '']) => textOf(text))
  expect(lines).toHaveLength(ROUTES.length)
  const lineOf = new Map(CAPABILITIES.flatMap(({ routes }) => routes).map((row, at) => [row, lines[at]]))
  const own = prelude
    .replace(/^RELAY=\S+/m, `RELAY=${internalUrl}`)
    .replace(/^PUBLIC=\S+/m, `PUBLIC=${publicUrl}`)
    .replace(/^USERNAME=.*$/m, `USERNAME=${ADMIN.username} PASSWORD='${ADMIN.password}'`)
    .replace(/^SHARED_KEY=.*$/m, `SHARED_KEY='${SHARED_KEY}'`)
  const { stdout } = await promisify(execFile)('bash', ['-ec', `${own}\necho $TOKEN`])
  const answers: unknown[] = []
  for (const row of inOrder) {
    const script = `RELAY=${internalUrl} PUBLIC=${publicUrl} SHARED_KEY='${SHARED_KEY}' TOKEN=${stdout.trim()}\n${lineOf.get(row)} -o /dev/null -w '%{http_code}'`
    const status = Number((await promisify(execFile)('bash', ['-ec', script])).stdout)
    answers.push([nameOf(row), (status >= 200 && status < 300) || status])
  }
  expect(answers).toEqual(inOrder.map((row) => [nameOf(row), REFUSED[nameOf(row)] ?? true]))
})

/** The text of markup that holds no tags. */
function textOf(markup: string): string {
  return markup.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}
