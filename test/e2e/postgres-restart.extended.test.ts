import { expect, test } from 'vitest'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ADMIN, ask, logIn, writeConfig } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

test('a killed relay that restarts on its machine does not wait until its old lease expires', async () => {
  const folder = temporaryFolder()
  const shared = await onPostgres()
  const killed = await runRelay(writeConfig(folder, NO_CARRIER, shared))
  killed.process.kill('SIGKILL')
  await killed.ended
  const relay = await relayOfTest(shared, { folder })
  const token = await logIn(relay.internalUrl, ADMIN)
  const replicas = await (await ask(relay.internalUrl, token, '/relay/replicas')).json()
  expect(replicas).toEqual({ replicas: [expect.objectContaining({ name: expect.stringMatching(new RegExp(`/${process.pid}$`)) })] })
})
