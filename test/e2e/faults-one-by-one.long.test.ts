import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'vitest'
import type { SandboxStats } from '../../src/trial/sandbox/control-api.ts'
import { type Faults, noFaults } from '../../src/trial/sandbox/options.ts'
import { startSandbox } from '../../src/trial/sandbox/sandbox.ts'
import { knownByPush, textOf, untilCaughtUp } from '../support/relay/caught-up.ts'
import { ADMIN, CARRIER_LOGIN, logIn, SHARED_KEY, startTestRelay } from '../support/relay/relay.ts'
import { inSeconds } from '../support/relay/relay-process.ts'
import { byForm } from '../support/runner/long-form.ts'

type Case = readonly [name: string, faults: Partial<Faults>, met: 'pushes' | 'calls' | 'nothing to count']

/** Lists each fault, and the statistic that shows that the fault happened. */
const EACH: readonly Case[] = [
  ['a third of the pushes lost', { loss: 0.33 }, 'pushes'],
  ['half of the pushes sent twice', { duplicates: 0.5 }, 'pushes'],
  ['pushes out of order', { reorder: 20 }, 'pushes'],
  ['pushes late', { delayMs: 300 }, 'nothing to count'],
  ['a third of the calls refused as unauthorized', { unauthorized: 0.33, loss: 0.3 }, 'calls'],
  ['a third of the calls refused as too many', { rateLimited: 0.33, loss: 0.3 }, 'calls'],
  ['a third of the calls failing', { serverErrors: 0.33, loss: 0.3 }, 'calls'],
  ['tokens that live for a fifth of a second', { tokenLifetimeMs: 200, loss: 0.3 }, 'calls'],
  ['half of the texts in one language only', { languageGaps: 0.5, loss: 0.3 }, 'nothing to count'],
  ['no pushes at all', { silence: true }, 'pushes'],
]

/** Combines the faults, so that fewer sandboxes are needed. */
const TOGETHER: readonly Case[] = [
  ['pushes lost, sent twice, late and out of order', { loss: 0.33, duplicates: 0.5, reorder: 20, delayMs: 300 }, 'pushes'],
  [
    'calls refused as unauthorized, and tokens that live for a fifth of a second',
    { unauthorized: 0.33, tokenLifetimeMs: 200, loss: 0.3 },
    'calls',
  ],
  ['calls refused as too many, and calls failing', { rateLimited: 0.25, serverErrors: 0.25, loss: 0.3 }, 'calls'],
  ['half of the texts in one language only, and no pushes at all', { languageGaps: 0.5, silence: true }, 'pushes'],
]

const CASES = byForm(TOGETHER, EACH)

function refusedCalls(calls: SandboxStats['calls']): number {
  const refused = Object.entries(calls['/v1/status/{number}/all'] ?? {}).filter(([status]) => !['200', '404'].includes(status))
  return refused.reduce((sum, [, count]) => sum + count, 0)
}

// Run the tests concurrently, because they mostly wait.
describe.concurrent('faults of the carrier', () => {
  test.for(CASES)(
    'with %s, every history equals the carrier’s in the end, byte for byte',
    async ([_name, faults, met], { expect, onTestFinished }) => {
      const sandbox = await startSandbox({ ...CARRIER_LOGIN, sharedKey: SHARED_KEY, parcels: 12, seed: 5, speed: 0 })
      onTestFinished(() => sandbox.stop())
      const folder = mkdtempSync(join(tmpdir(), 'parcel-relay-'))
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
      const relay = await startTestRelay(folder, sandbox.url, inSeconds)
      onTestFinished(() => relay.stop())
      const asker = { internalUrl: relay.internalUrl, token: await logIn(relay.internalUrl, ADMIN) }
      sandbox.setWebhookUrls([`${relay.publicUrl}/webhooks/status`])
      // Let the relay learn every parcel before the faults begin.
      await sandbox.advance(20 * 3_600_000)
      await Promise.all(
        sandbox.world
          .parcels()
          .filter(({ entries }) => entries > 0)
          .map(({ trackingNumber }) => textOf(asker, trackingNumber, 'all', 'en')),
      )
      sandbox.setFaults(faults)
      for (let leap = 0; leap < 3; leap++) {
        await sandbox.advance(10 * 3_600_000)
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
      await sandbox.finish()
      await sandbox.settle()
      const { pushes } = sandbox.stats()
      if (met === 'pushes') expect(pushes.lost + pushes.duplicated + pushes.reordered + pushes.silenced).toBeGreaterThan(3)
      // The faults go on until a poll has met a fault.
      if (met === 'calls') await expect.poll(() => refusedCalls(sandbox.stats().calls)).toBeGreaterThan(0)
      // Missing texts stay missing at the carrier; all other faults end here.
      sandbox.setFaults({ ...noFaults, languageGaps: faults.languageGaps ?? 0 })
      const parcels = sandbox.world.parcels()
      await untilCaughtUp(asker, parcels, 'en', (parcel) => knownByPush(parcel) ?? parcel.trackingNumber)
    },
  )
})
