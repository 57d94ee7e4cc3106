import { expect, test } from 'vitest'
import { receiverOfTest } from '../../support/network/webhook-receiver.ts'
import { loggedInAt } from '../../support/portal/portal-visitor.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { commandsOf } from '../../support/relay/run-command.ts'

test('the command and the portal send a test event, and both show the answer', async () => {
  const receiver = await receiverOfTest()
  const relay = await relayOfTest({ operator: { url: receiver.url, format: 'ntfy' } })
  const run = commandsOf(relay)
  const visitor = await loggedInAt(relay.internalUrl)
  expect(await run('operator', 'test')).toMatchObject({ code: 0, stdout: 'The test event was accepted (status 200).\n' })
  expect((await visitor.get('/events')).text).toContain('Send a test event')
  expect((await visitor.post('/events/test', {})).text).toContain('The test was accepted:')
  expect(receiver.pushes.map(({ body }) => String(body))).toEqual(Array(2).fill(expect.stringContaining('This is a test')))
  receiver.answer(() => 403)
  const refused = await run('operator', 'test', '--json')
  expect([refused.code, JSON.parse(refused.stdout)]).toEqual([1, expect.objectContaining({ result: 'rejected', status: 403 })])
  expect(refused.stderr).toContain('the test event was not accepted: status 403')
  expect((await visitor.post('/events/test', {})).text).toContain('The test was refused:')
})

test('a test event without an operator fails, and says what to configure', async () => {
  const run = commandsOf(await relayOfTest())
  expect(await run('operator', 'test')).toMatchObject({ code: 1, stderr: expect.stringContaining('operator.url') })
})
