import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { signBody } from '../../../src/core/domain/ingest/signature.ts'
import { pushBody } from '../../support/history/builders.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { ADMIN, push, writeConfig } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { runRelay } from '../../support/relay/relay-process.ts'
import { commandsOf } from '../../support/relay/run-command.ts'
import { NO_CARRIER } from '../../support/runner/constants.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { whileLocked } from '../../support/store/stored-rows.ts'

test('reload says what changed, what needs a restart, and what is wrong in the file', async () => {
  const folder = temporaryFolder()
  const config = writeConfig(folder, NO_CARRIER)
  await using relay = await runRelay(config)
  const run = commandsOf(relay)
  expect(await run('reload')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/: nothing has changed\. A secret from a variable .* by a restart\.\n$/),
  })
  writeConfig(folder, NO_CARRIER, { retention: { history: '300d' }, limits: { batch: 100 } })
  const changed = await run('reload')
  expect(changed.stdout).toMatch(/: in effect now:\n {2}retention\.history\nThese have changed too, and need a restart:\n {2}limits\n$/)
  const operate = await operatorOf(relay)
  expect((await operate('GET', '/relay/audit?limit=1')).body).toMatchObject({
    actions: [{ action: 'config.reloaded', by: { kind: 'app', name: ADMIN.username }, detail: { changed: ['retention.history'] } }],
  })
  appendFileSync(config, 'unknwon: 1\n')
  const wrong = await run('reload')
  expect([wrong.code, wrong.stderr]).toEqual([
    1,
    expect.stringMatching(/nothing has changed\.\n.*relay\.yaml:\d+:1 unknwon: is not a known key.*\n +\d+ \| unknwon/),
  ])
  expect((await operate('GET', '/relay/operator-events?limit=1')).body).toMatchObject({ events: [{ event: 'reload_failed' }] })
})

test('a reload that the store does not take says so, and that the config may be right', async () => {
  const folder = temporaryFolder()
  await using relay = await runRelay(writeConfig(folder, NO_CARRIER))
  writeConfig(folder, NO_CARRIER, { retention: { history: '300d' } })
  await whileLocked(join(folder, 'relay.db'), async () => {
    expect(await commandsOf(relay)('reload')).toMatchObject({ code: 1, stderr: expect.stringContaining('store') })
  })
  const operate = await operatorOf(relay)
  await expect
    .poll(async () => (await operate('GET', '/relay/operator-events?limit=1')).body)
    .toMatchObject({
      events: [{ event: 'reload_failed', problems: [expect.stringMatching(/^the store took nothing, so the config may be right: /)] }],
    })
})

test('a reload reads a secret file again, even if the config file has not changed', async () => {
  const folder = temporaryFolder()
  const [file, before, after] = [join(folder, 'shared_key'), 'a-key-of-the-carrier-before', 'a-key-of-the-carrier-after']
  writeFileSync(file, before)
  await using relay = await runRelay(writeConfig(folder, NO_CARRIER, { webhook: { sharedKeys: [{ file }] } }))
  const statusOf = async (key: string) => {
    const body = pushBody()
    return (await push(relay.publicUrl, body, { 'x-service-hmac-sha256': signBody(body, key) })).status
  }
  expect(await statusOf(before)).toBe(200)
  writeFileSync(file, after)
  expect((await commandsOf(relay)('reload')).stdout).toMatch(/: in effect now:\n {2}webhook\.sharedKeys\n$/)
  expect([await statusOf(after), await statusOf(before)]).toEqual([200, 401])
})

test('a relay that was not started from a file has nothing to reload', async () => {
  const run = commandsOf(await relayOfTest())
  expect(await run('reload')).toMatchObject({ code: 1, stderr: expect.stringContaining('not started from a config file') })
})
