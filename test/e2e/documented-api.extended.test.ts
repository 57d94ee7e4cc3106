import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { closeOpened } from '../core/carrier/carrier-double.ts'
import { documentedCommands, failedOf, typeInShell } from '../support/docs/shell-session.ts'
import { SHARED_KEY } from '../support/relay/relay.ts'
import { startWithExamples } from '../support/relay/relay-with-examples.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { testWith } from '../support/runner/test-with.ts'

afterAll(closeOpened)

const PAGE = 'docs/api.md'

test('every section of docs/api.md with a table has a line to paste into a shell', () => {
  const parts = readFileSync(PAGE, 'utf8').split(/^#+ /m)
  const tables = parts.filter((part) => part.includes('|---|'))
  expect(tables.length).toBeGreaterThan(8)
  expect(tables.filter((part) => !part.includes('```sh api\n')).map((part) => part.split('\n')[0])).toEqual([])
})

testWith(
  'bash',
  'curl',
  'openssl',
)('each shell line of docs/api.md works', async () => {
  const { publicUrl, internalUrl } = await startWithExamples()
  const folder = temporaryFolder()
  // Make curl exit with an error when the answer is an error.
  writeFileSync(join(folder, '.curlrc'), 'fail-with-body\n')
  const own = (command: string) =>
    command
      .replace('RELAY=http://127.0.0.1:8081 PUBLIC=http://127.0.0.1:8080', `RELAY=${internalUrl} PUBLIC=${publicUrl}`)
      .replace('the key of the carrier, from webhook.sharedKeys', SHARED_KEY)
  const env = { PATH: process.env.PATH, CURL_HOME: folder, HOME: folder }
  const typed = await typeInShell(documentedCommands(PAGE, 'api').map(own), { cwd: folder, env })
  const [refused, ...failed] = failedOf(typed)
  expect(failed).toEqual([])
  // This line is the documented example of an error.
  expect(refused).toMatchObject({ command: expect.stringContaining('colour=red'), status: 22 })
  expect(refused?.output).toMatch(/"type":"urn:parcel-relay:error:bad_request".*colour/)
  expect(typed.find(({ command }) => command.includes('/webhooks/status'))?.output).toBe('200\n')
})
