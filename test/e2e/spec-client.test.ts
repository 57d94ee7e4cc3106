import { expect, test } from 'vitest'
import { assertCarrierContract, type ContractReport } from '../support/network/spec-client.ts'
import { fetchDocumented } from '../support/portal/api-document.ts'
import { type Asker, knownByPush, textOf, untilCaughtUp } from '../support/relay/caught-up.ts'
import { ADMIN, CARRIER_LOGIN, logIn, SHOP } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { inSeconds } from '../support/relay/relay-process.ts'
import { spawnSandbox } from '../support/relay/sandbox-process.ts'
import { byForm } from '../support/runner/long-form.ts'

const PARCELS = byForm(20, 40)
const FLAGS = ['--parcels', String(PARCELS), '--seed', '3', '--hard', '0.4', '--loss', '0.3', '--duplicates', '0.1', '--reorder', '40']
const LANGUAGES = ['en', 'sv'] as const

/** Expects that the test has compared every kind of answer in the contract. */
function expectLookedAt(report: ContractReport): void {
  expect(report.parcels).toBe(PARCELS)
  expect(report.entries).toBeGreaterThan(12 * PARCELS)
  expect(report.consumerTexts).toBeGreaterThan(5 * PARCELS)
  expect(report.hidden).toBeGreaterThan(2 * PARCELS)
  expect(report.differingTexts).toBeGreaterThan(5 * PARCELS)
}

async function refresh({ internalUrl, token }: Asker, identifier: string): Promise<void> {
  const init = { method: 'POST', headers: { authorization: `Bearer ${token}` } }
  const answer = await fetchDocumented(`${internalUrl}/relay/parcels/${identifier}/refresh`, init)
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('"recorded"')])
}

test('a client that knows only the specification cannot tell the relay from the carrier', async () => {
  await using sandbox = await spawnSandbox(FLAGS)
  const relay = await relayOfTest(inSeconds, { carrierUrl: sandbox.url })
  const asker = { internalUrl: relay.internalUrl, token: await logIn(relay.internalUrl, ADMIN) }
  await sandbox.order('webhooks', { urls: [`${relay.publicUrl}/webhooks/status`] })
  await sandbox.order('finish')
  const { parcels } = await sandbox.world()
  expect((await sandbox.stats()).pushes.lost).toBeGreaterThan(PARCELS)

  // Wait until pushes and polls have reported all they can. Then ask for each tracking number, to join its parcel with the pushed one.
  await untilCaughtUp(
    asker,
    parcels.filter((parcel) => knownByPush(parcel) !== null),
    'en',
    (parcel) => knownByPush(parcel) ?? '',
  )
  for (const { trackingNumber } of parcels) for (const language of LANGUAGES) await textOf(asker, trackingNumber, 'all', language)
  // Scheduled polls do not fetch changed texts in the second language, so refresh each parcel.
  for (const { trackingNumber } of parcels) await refresh(asker, trackingNumber)

  const knownNumbers = parcels.map(({ trackingNumber }) => trackingNumber)
  const carrier = await assertCarrierContract({ ...CARRIER_LOGIN, baseUrl: sandbox.url, knownNumbers, languages: LANGUAGES })
  const served = await assertCarrierContract({ ...SHOP, baseUrl: relay.internalUrl, knownNumbers, languages: LANGUAGES })
  expectLookedAt(carrier)
  expectLookedAt(served)
  expect(served).toEqual(carrier)
})
