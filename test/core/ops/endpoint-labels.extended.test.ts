import { expect, test } from 'vitest'
import { CONDITIONS } from '../../../src/core/domain/delivery/endpoint-state.ts'
import { pushBody } from '../../support/history/builders.ts'
import { receiverOfTest } from '../../support/network/webhook-receiver.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { scrapeOf } from '../../support/relay/recorded-scrapes.ts'
import { push } from '../../support/relay/relay.ts'
import { DELIVERING, metricsWith } from '../../support/relay/relay-metrics.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'

/** Metrics of a relay with these endpoints; `setEndpoints` replaces them. */
function metricsOf() {
  let living: readonly string[] = []
  const metrics = metricsWith({
    endpoints: async () => living.map((name) => ({ name, waiting: 0, oldestWaitingSeconds: 0, dead: 0, conditions: DELIVERING })),
  })
  return {
    setEndpoints: (names: readonly string[]) => {
      living = names
    },
    attempt: (name: string) => metrics.meter.deliveryAttempted({ id: name, name }, 'accepted', 1),
    /** The accepted attempts by label, as a scrape sees them. */
    async scrape(): Promise<Readonly<Record<string, number>>> {
      const lines = (await metrics.render()).body.matchAll(
        /^relay_delivery_attempts_total\{endpoint="([^"]+)",outcome="accepted"\} (\d+)$/gm,
      )
      return Object.fromEntries([...lines].map(([, name, count]) => [name, Number(count)]))
    },
  }
}

const COME_AND_GONE = Array.from({ length: 205 }, (_, at) => `gone-${at}`)

test.each(['scraped after each', 'scraped at the end'])('endpoints that came and went take no label from the living: %s', async (when) => {
  const { setEndpoints, attempt, scrape } = metricsOf()
  for (const name of COME_AND_GONE) {
    setEndpoints([name])
    attempt(name)
    if (when === 'scraped after each') await scrape()
  }
  setEndpoints(['shop', 'desk'])
  attempt('shop')
  const shown = await scrape()
  expect(shown.shop).toBe(1)
  expect(shown.desk).toBe(0)
  expect(Object.keys(shown).filter((name) => name.startsWith('gone-'))).toEqual([])
})

test('an endpoint without a label of its own is counted among the others', async () => {
  const { setEndpoints, attempt, scrape } = metricsOf()
  setEndpoints(['shop', 'others'])
  attempt('shop')
  attempt('the-201st')
  attempt('the-202nd')
  await scrape()
  attempt('the-201st')
  expect(await scrape()).toEqual({ shop: 1, others: 3 })
})

test('each endpoint shows 1 for the condition that it is in, and 0 for the three others', async () => {
  const relay = await relayOfTest({ delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['10h'] } })
  const operate = await operatorOf(relay)
  const [good, bad] = [await receiverOfTest(), await receiverOfTest()]
  bad.answer(() => 500)
  await operate('POST', '/relay/endpoints', { name: 'delivering', url: good.url })
  await operate('POST', '/relay/endpoints', { name: 'failing', url: bad.url })
  for (let nth = 0; nth < 8; nth++) await push(relay.publicUrl, pushBody({ trackingIds: [String(9100 + nth)] }))
  await operate('POST', '/relay/endpoints', { name: 'untried', url: good.url })
  await operate('POST', '/relay/endpoints', { name: 'disabled', url: good.url, enabled: false })
  const conditions = async () =>
    [...(await scrapeOf(relay)()).matchAll(/^relay_endpoint_condition\{endpoint="(\w+)",condition="(\w+)"\} (\d)$/gm)].map(
      ([, endpoint, condition, value]) => `${endpoint} ${condition} ${value}`,
    )
  const expected = CONDITIONS.flatMap((endpoint) => CONDITIONS.map((one) => `${endpoint} ${one} ${one === endpoint ? 1 : 0}`))
  await expect.poll(async () => (await conditions()).toSorted()).toEqual(expected.toSorted())
})
