import { expect, test } from 'vitest'
import { knownByPush, textOf, untilCaughtUp } from '../support/caught-up.ts'
import { ADMIN, CARRIER_LOGIN, logIn, SHOP, writeConfig } from '../support/relay.ts'
import { inSeconds, runRelay } from '../support/relay-process.ts'
import { spawnSandbox } from '../support/sandbox-process.ts'
import { assertCarrierContract, type ContractReport } from '../support/spec-client.ts'
import { temporaryFolder } from '../support/temporary.ts'

const FLAGS = ['--parcels', '40', '--seed', '3', '--hard', '0.4', '--loss', '0.3', '--duplicates', '0.1', '--reorder', '40']
const LANGUAGES = ['en', 'sv'] as const

/** Of every kind that the contract speaks of, something was looked at. */
function expectLookedAt(report: ContractReport): void {
  expect(report.parcels).toBe(40)
  expect(report.entries).toBeGreaterThan(500)
  expect(report.consumerTexts).toBeGreaterThan(200)
  expect(report.hidden).toBeGreaterThan(100)
  expect(report.differingTexts).toBeGreaterThan(200)
}

test('a client that knows only the specification cannot tell the relay from the carrier', async () => {
  await using sandbox = await spawnSandbox(FLAGS)
  await using relay = await runRelay(writeConfig(temporaryFolder(), sandbox.url, inSeconds))
  const asker = { internalUrl: relay.internalUrl, token: await logIn(relay.internalUrl, ADMIN) }
  await sandbox.order('webhooks', { urls: [`${relay.publicUrl}/webhooks/status`] })
  await sandbox.order('finish')
  const { parcels } = await sandbox.world()
  expect((await sandbox.stats()).pushes.lost).toBeGreaterThan(50)

  // Learnt by push and poll; only what neither can tell of is asked for by name, and then joins what the pushes told.
  await untilCaughtUp(
    asker,
    parcels.filter((parcel) => knownByPush(parcel) !== null),
    'en',
    (parcel) => knownByPush(parcel) ?? '',
  )
  for (const { trackingNumber } of parcels) for (const language of LANGUAGES) await textOf(asker, trackingNumber, 'all', language)

  const knownNumbers = parcels.map(({ trackingNumber }) => trackingNumber)
  const carrier = await assertCarrierContract({ ...CARRIER_LOGIN, baseUrl: sandbox.url, knownNumbers, languages: LANGUAGES })
  const served = await assertCarrierContract({ ...SHOP, baseUrl: relay.internalUrl, knownNumbers, languages: LANGUAGES })
  expectLookedAt(carrier)
  expectLookedAt(served)
  expect(served).toEqual(carrier)
})
