import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { signBody } from '../../src/core/domain/ingest/signature.ts'
import { closeOpened, openCarrier } from '../core/carrier/carrier-double.ts'
import { documentedCommands, failedOf, typeInShell } from '../support/docs/shell-session.ts'
import { pushBody } from '../support/history/builders.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { ADMIN, push, SHARED_KEY, spawnRelay, writeConfig } from '../support/relay/relay.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { shipped } from '../support/runner/shipped.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { testWith } from '../support/runner/test-with.ts'

afterAll(closeOpened)

/** Makes a folder like that of an operator, with the config and the data, and puts `parcel-relay` on the path. */
function setUp(carrierUrl: string, operatorUrl: string) {
  const folder = temporaryFolder()
  for (const name of ['bin', 'config', 'data', 'backups']) mkdirSync(join(folder, name))
  const config = writeConfig(join(folder, 'config'), carrierUrl, {
    store: `sqlite:${join(folder, 'data', 'relay.db')}`,
    delivery: { allowNetworks: ['127.0.0.0/8'] },
    backup: { directory: join(folder, 'backups') },
    operator: { url: operatorUrl, sharedKey: 'the-key-of-the-operators-hook' },
  })
  const { args, env } = shipped()
  const program = ['#!/bin/sh', `exec ${[process.execPath, ...args].map((word) => `'${word}'`).join(' ')} "$@"`, ''].join('\n')
  writeFileSync(join(folder, 'bin', 'parcel-relay'), program, { mode: 0o755 })
  // Make curl exit with an error when the answer is an error.
  writeFileSync(join(folder, '.curlrc'), 'fail-with-body\n')
  const path = `${join(folder, 'bin')}:${dirname(process.execPath)}:${process.env.PATH ?? ''}`
  return { folder, config, env: { ...env, PATH: path, CURL_HOME: folder, HOME: folder } }
}

testWith(
  'bash',
  'curl',
  'openssl',
)('each command of docs/runbooks.md works with a running relay', async () => {
  const carrier = await openCarrier()
  await using operator = await startWebhookReceiver()
  const { folder, config, env } = setUp(carrier.url, operator.url)
  const relay = await spawnRelay(config)
  await using shop = await startWebhookReceiver()
  await (await operatorOf(relay))('POST', '/relay/endpoints', { name: 'shop', url: shop.url })
  const body = pushBody()
  await push(relay.publicUrl, body)
  writeFileSync(join(folder, 'body.json'), body)
  const commands = documentedCommands('docs/runbooks.md', 'runbooks').map((command) =>
    command.replace('http://127.0.0.1:8081', relay.internalUrl),
  )
  const typed = await typeInShell([`SIGNATURE='${signBody(body, SHARED_KEY)}'`, ...commands], {
    cwd: folder,
    env,
    answers: [ADMIN.password],
  })
  expect(failedOf(typed)).toEqual([])
  expect(typed.length).toBeGreaterThan(30)
  const outputOf = (part: string) => typed.find(({ command }) => command.includes(part))?.output
  expect(outputOf('parcel-relay status')).toMatch(/^(Everything works|No trouble seen; .*)$/m)
  expect(outputOf('endpoints show shop')).toContain(shop.url)
  expect(outputOf('/readyz')).toContain('"status":"ready"')
  expect(outputOf('parcel-relay verify')).toContain('matches')
  relay.process.kill('SIGTERM')
  await relay.ended
})

test('the shell lines of docs/operating.md watch the parcels of the list there', async () => {
  const carrier = await openCarrier()
  const { folder, config, env } = setUp(carrier.url, NO_CARRIER)
  const relay = await spawnRelay(config)
  const [, list = ''] = /^```csv\n(.*?)^```$/ms.exec(readFileSync('docs/operating.md', 'utf8')) ?? []
  writeFileSync(join(folder, 'parcels.csv'), list)
  const commands = documentedCommands('docs/operating.md', 'switch').map((command) =>
    command.replace('http://127.0.0.1:8081', relay.internalUrl),
  )
  const typed = await typeInShell(commands, { cwd: folder, env, answers: [ADMIN.password] })
  expect(failedOf(typed)).toEqual([])
  const outputOf = (part: string) => typed.find(({ command }) => command.includes(part))?.output
  expect(outputOf('watch --file')).toMatch(
    /^2 watched \(2 new to the relay\), 0 bad of 2 lines\nA number counts as new until its first poll, /,
  )
  expect(outputOf('parcel-relay parcels')).toMatch(/^AB123456789SE .*\nAB123456790SE /m)
  relay.process.kill('SIGTERM')
  await relay.ended
})
