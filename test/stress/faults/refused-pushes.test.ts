import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { signBody } from '../../../src/core/domain/ingest/signature.ts'
import { createRefusalSamples } from '../../../src/upkeep/refusals/refusal-samples.ts'
import { KEY, push, startPublic, systemClock } from '../../core/http/harness.ts'
import { expectBesideControl } from '../../support/runner/beside-control.ts'
import { createLogBook } from '../../support/runner/log-book.ts'

const PUSHES = 1000
const AT_ONCE = 16
/** The text has many characters that can be written in several ways, and the search for an explanation tries each. */
const BODY = JSON.stringify({ status: 'Ingested', texts: Array.from({ length: 12 }, (_, nth) => `på väg <${nth}> "nu"`) })
const WRONG = signBody(Buffer.from(BODY), 'a key that nobody here has')

async function flood(url: string): Promise<number> {
  const fromMs = performance.now()
  let left = PUSHES
  const sender = async () => {
    while (left-- > 0) {
      const answer = await push(url, BODY, { 'x-service-hmac-sha256': WRONG })
      await answer.arrayBuffer()
      if (answer.status !== 401) expect.fail(`status ${answer.status}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, sender))
  return performance.now() - fromMs
}

test('I15: explaining some refused pushes does not make a flood of them more expensive', async () => {
  let explained = 0
  const refusals = createRefusalSamples(
    { clock: systemClock, log: createLogBook().log, yieldToOthers: () => nextTurn(), explained: () => explained++ },
    { push: [{ name: 'webhook.sharedKeys[0]', key: KEY }], others: [] },
  )
  const [silent, examining] = [
    await startPublic({ failuresPerMinute: 10_000_000 }),
    await startPublic({ failuresPerMinute: 10_000_000, refusals }),
  ]
  await flood(examining.url)
  console.info(await expectBesideControl({ control: () => flood(silent.url), fault: () => flood(examining.url), ratio: 1.15 }))
  // On a slow machine a search takes long, and the next one waits fifty times as long.
  while (explained < 2) await flood(examining.url)
})
