import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { findPort, setStage } from '../../../src/trial/demo/stage.ts'
import { SECTIONS } from '../../support/relay/load-config.ts'

const OPTIONS = {
  store: 'sqlite',
  sections: SECTIONS,
  freePorts: true,
  parcels: 1,
  seconds: 1,
  seed: 1,
  loss: 0,
  onTrouble: () => undefined,
} as const

test.each([
  ['the relay’s public', 0],
  ['the relay’s internal', 1],
  ['the carrier’s', 2],
  ['the subscriber’s', 3],
])('the demo starts although another program takes %s port before the demo uses it', async (_whose, taken) => {
  // Ignore the errors of connections, in case the demo connects here by mistake.
  const other = createServer((socket) => socket.on('error', () => undefined))
  onTestFinished(() => void other.close())
  let asked = 0
  const stage = await setStage(OPTIONS, async (host, preferred) => {
    const found = await findPort(host, preferred)
    if (asked++ === taken) await once(other.listen(found.port, host), 'listening')
    return found
  })
  onTestFinished(() => stage.stop())
  // Each start asks for five ports. There may be a third start, because other programs on the machine take free ports too.
  expect(asked).toBeGreaterThanOrEqual(10)
  expect(asked % 5).toBe(0)
  expect((await fetch(`${stage.replicas[0]?.internalUrl}/healthz`)).status).toBe(200)
})
