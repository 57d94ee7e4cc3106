import { readFileSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { closeOpened } from '../core/carrier/carrier-double.ts'
import { fetchDocumented } from '../support/portal/api-document.ts'
import { nameOf, requestOf } from '../support/portal/internal-routes.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { inOrder, REFUSED, startWithExamples } from '../support/relay/relay-with-examples.ts'

afterAll(closeOpened)

test('GET /openapi.json is docs/openapi.json, and needs no token', async () => {
  const relay = await relayOfTest()
  const answer = await fetchDocumented(`${relay.internalUrl}/openapi.json`)
  expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([
    200,
    'application/json',
    readFileSync('docs/openapi.json', 'utf8'),
  ])
})

test('a running relay answers the example of each route as documented', async () => {
  const { publicUrl, ask, untilReadyFor } = await startWithExamples()
  const answers: unknown[] = []
  for (const row of inOrder) {
    await untilReadyFor(row)
    const { method, path, type, body } = requestOf(nameOf(row))
    const answer = row.listener === 'public' ? await push(publicUrl, body ?? '') : await ask(method, path, body, type)
    answers.push([nameOf(row), answer.ok || answer.status])
  }
  expect(answers).toEqual(inOrder.map((row) => [nameOf(row), REFUSED[nameOf(row)] ?? true]))
})
