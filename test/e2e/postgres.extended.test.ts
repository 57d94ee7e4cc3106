import { expect, test } from 'vitest'
import { receiverOfTest, type WebhookReceiver } from '../support/network/webhook-receiver.ts'
import { knownByPush, textOf, untilCaughtUp, untilSent } from '../support/relay/caught-up.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ADMIN, logIn, type Sections } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { inSeconds } from '../support/relay/relay-process.ts'
import { spawnSandbox } from '../support/relay/sandbox-process.ts'
import { byForm } from '../support/runner/long-form.ts'

const KEY = 'the-key-of-the-endpoint'
const PARCELS = byForm(10, 20)

async function startRelaying(carrierUrl: string, sections: Sections) {
  const receiver = await receiverOfTest()
  const endpoints = [{ name: 'shop', url: receiver.url, sharedKey: KEY }]
  const delivery = { schedule: ['100ms', '200ms'], allowNetworks: ['127.0.0.0/8'] }
  const relay = await relayOfTest({ ...inSeconds, endpoints, delivery, ...sections }, { carrierUrl })
  return { ...relay, receiver, asker: { internalUrl: relay.internalUrl, token: await logIn(relay.internalUrl, ADMIN) } }
}

/** Counts the events that an endpoint got, and expects each after the previous event of its parcel. */
function countInOrder({ pushes }: WebhookReceiver): number {
  const sent = new Set(['0'])
  for (const { headers } of pushes) {
    expect(sent).toContain(headers['relay-previous-sequence'])
    sent.add(headers['relay-sequence'] ?? '')
  }
  return sent.size - 1
}

test('a relay on PostgreSQL answers and delivers the same bytes as one on SQLite', async () => {
  await using sandbox = await spawnSandbox([
    '--parcels',
    String(PARCELS),
    '--seed',
    '11',
    '--loss',
    '0.2',
    '--duplicates',
    '0.1',
    '--reorder',
    '20',
  ])
  const relays = await Promise.all([startRelaying(sandbox.url, {}), startRelaying(sandbox.url, await onPostgres())])
  for (const { receiver } of relays) receiver.answer((nth) => (nth % 7 === 3 ? 503 : 200))
  await sandbox.order('webhooks', { urls: relays.map(({ publicUrl }) => `${publicUrl}/webhooks/status`) })
  for (const hours of [10, 12]) await sandbox.order('advance', { seconds: hours * 3600 })
  await sandbox.order('finish')
  const { parcels } = await sandbox.world()
  const known = parcels.filter((parcel) => knownByPush(parcel) !== null)
  expect(known.length).toBeGreaterThan(0.6 * PARCELS)
  const nameOf = (parcel: (typeof parcels)[number]) => knownByPush(parcel) ?? ''
  for (const { asker } of relays) await untilCaughtUp(asker, known, 'en', nameOf)
  for (const parcel of known) {
    for (const kind of ['all', 'latest'] as const) {
      const [one, other] = await Promise.all(relays.map(({ asker }) => textOf(asker, nameOf(parcel), kind, 'sv')))
      expect(other).toBe(one)
    }
  }
  for (const { asker, receiver } of relays) {
    await untilSent(asker)
    expect(countInOrder(receiver)).toBeGreaterThan(3 * PARCELS)
  }
})
