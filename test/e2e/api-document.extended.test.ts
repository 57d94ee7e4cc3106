import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, expect } from 'vitest'
import { closeOpened } from '../core/carrier/carrier-double.ts'
import { nameOf } from '../support/portal/internal-routes.ts'
import { ADMIN, SHARED_KEY } from '../support/relay/relay.ts'
import { inOrder, REFUSED, startWithExamples } from '../support/relay/relay-with-examples.ts'
import { CAPABILITIES, ROUTES } from '../support/relay/routes.ts'
import { testWith } from '../support/runner/test-with.ts'

afterAll(closeOpened)

testWith(
  'bash',
  'curl',
  'openssl',
)('each curl line of /docs works in a shell', async () => {
  const { publicUrl, internalUrl, untilReadyFor } = await startWithExamples()
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
    await untilReadyFor(row)
    const script = `RELAY=${internalUrl} PUBLIC=${publicUrl} SHARED_KEY='${SHARED_KEY}' TOKEN=${stdout.trim()}\n${lineOf.get(row)} -o /dev/null -w '%{http_code}'`
    const status = Number((await promisify(execFile)('bash', ['-ec', script])).stdout)
    answers.push([nameOf(row), (status >= 200 && status < 300) || status])
  }
  expect(answers).toEqual(inOrder.map((row) => [nameOf(row), REFUSED[nameOf(row)] ?? true]))
})

/** Decodes the character references of a text without tags. */
function textOf(markup: string): string {
  return markup.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}
