import { expect, test } from 'vitest'
import { type EndpointToTry, endpointProbes } from '../../../src/upkeep/check/outbound-probes.ts'

const SHOP: EndpointToTry = { name: 'shop', url: 'http://shop/hook', enabled: true, trouble: null, route: () => ({}) }
const TROUBLE = 'It fails, and has accepted nothing. See: parcel-relay endpoints show shop.'

async function lookedAt(endpoint: Partial<EndpointToTry>, isReached = true) {
  const [probe] = endpointProbes([{ ...SHOP, ...endpoint }], async () => (isReached ? null : { reason: 'dns', detail: 'ENOTFOUND' }))
  return await probe?.look()
}

test('an endpoint that accepts connections but refuses events is a warning', async () => {
  expect(await lookedAt({})).toEqual({ state: 'ok', message: 'shop takes connections.' })
  expect(await lookedAt({ trouble: TROUBLE })).toEqual({ state: 'warning', message: `shop takes connections. ${TROUBLE}` })
})

test('an endpoint that cannot be reached fails, and the message adds its earlier trouble', async () => {
  expect(await lookedAt({ trouble: TROUBLE }, false)).toEqual({ state: 'failed', message: `shop: Its host has no address. ${TROUBLE}` })
})

test('an endpoint disabled by failures is a warning, and one disabled by an operator is skipped', async () => {
  expect(await lookedAt({ enabled: false, trouble: TROUBLE })).toEqual({ state: 'warning', message: TROUBLE })
  expect(await lookedAt({ enabled: false })).toMatchObject({ state: 'skipped' })
})
