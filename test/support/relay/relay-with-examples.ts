import { createServer } from 'node:http'
import { expect } from 'vitest'
import { openCarrier } from '../../core/carrier/carrier-double.ts'
import { pushBody } from '../history/builders.ts'
import { listenInTest } from '../network/listen.ts'
import { fetchDocumented } from '../portal/api-document.ts'
import { nameOf } from '../portal/internal-routes.ts'
import { ADMIN, logIn, push } from './relay.ts'
import { relayOfTest } from './relay-of-test.ts'
import { ROUTES } from './routes.ts'

/** The routes that this relay refuses: it has no job, no folder of backups, no config file and no operator, and cannot move its store. */
export const REFUSED: Readonly<Record<string, number>> = {
  'GET /relay/jobs/:id': 404,
  'POST /relay/store/move': 409,
  'POST /relay/backups': 409,
  'POST /relay/reload': 409,
  'POST /relay/operator/test': 404,
  'POST /relay/operator/enable': 404,
}

/** Starts a relay with what the examples in the API document refer to: a parcel, its waiting delivery, and a quarantined push. */
export async function startWithExamples() {
  const carrier = await openCarrier()
  const sections = { poll: { cron: '0 0 1 1 *' }, delivery: { allowNetworks: ['127.0.0.0/8'] } }
  const relay = await relayOfTest(sections, { carrierUrl: carrier.url })
  const refusing = createServer((_request, response) => response.writeHead(500).end('not today'))
  const token = await logIn(relay.internalUrl, ADMIN)
  const ask = (method: string, path: string, body: string | null, type: string) =>
    fetchDocumented(`${relay.internalUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body === null ? {} : { 'content-type': type }) },
      body,
    })
  const shop = { name: 'shop', url: `http://127.0.0.1:${await listenInTest(refusing)}/` }
  expect((await ask('POST', '/relay/endpoints', JSON.stringify(shop), 'application/json')).status).toBe(201)
  await push(relay.publicUrl, pushBody({ trackingIds: ['AB123456789SE'] }))
  await push(relay.publicUrl, 'no event')
  const untilDelivery = (state: string) =>
    expect.poll(async () => await (await ask('GET', '/relay/deliveries/1', null, '')).text()).toContain(`"state":"${state}"`)
  await untilDelivery('retrying')
  return {
    ...relay,
    ask,
    /** Waits until the example of this route can be sent. */
    async untilReadyFor(row: (typeof ROUTES)[number]) {
      // Only a delivery that has ended can be replayed. A delivery that is skipped during an attempt ends after the attempt.
      if (nameOf(row) === 'POST /relay/deliveries/:id/replay') await untilDelivery('dead')
    },
  }
}

const removals = ROUTES.filter(({ method }) => method === 'delete')
/** Routes that remove something come last. */
export const inOrder = [...ROUTES.filter((row) => !removals.includes(row)), ...removals]
