import { afterAll, expect, test } from 'vitest'
import { closeOpened, openCarrier } from '../core/carrier/carrier-double.ts'
import { pushBody } from '../support/history/builders.ts'
import { fetchDocumented } from '../support/portal/api-document.ts'
import { nameOf, requestOf } from '../support/portal/internal-routes.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ADMIN, logIn, push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { INTERNAL_ROUTES } from '../support/relay/routes.ts'

afterAll(closeOpened)

/** All orders of the API, those that remove something last. A move of the store would end both replicas. */
const ORDERS = INTERNAL_ROUTES.map(nameOf)
  .filter((route) => /^(?:POST|PUT|PATCH|DELETE) \/relay\//.test(route) && route !== 'POST /relay/store/move')
  .sort((a, b) => Number(a.startsWith('DELETE')) - Number(b.startsWith('DELETE')))

test('each order of the API is carried out at each replica, whatever roles it holds', async () => {
  const carrier = await openCarrier()
  const sections = { ...(await onPostgres()), poll: { cron: '0 0 1 1 *' }, delivery: { allowNetworks: ['127.0.0.0/8'] } }
  const replicas = [
    await relayOfTest(sections, { carrierUrl: carrier.url }),
    await relayOfTest(sections, { carrierUrl: carrier.url }),
  ] as const
  const token = await logIn(replicas[0].internalUrl, ADMIN)
  const send = async (at: number, { method, path, type, body }: ReturnType<typeof requestOf>) => {
    const headers = { authorization: `Bearer ${token}`, ...(body === null ? {} : { 'content-type': type }) }
    const answer = await fetchDocumented(`${replicas[at]?.internalUrl}${path}`, { method, headers, body })
    return { status: answer.status, text: await answer.text() }
  }
  const shop = JSON.stringify({ name: 'shop', url: 'http://127.0.0.1:9/' })
  const added = await send(0, { method: 'POST', path: '/relay/endpoints', type: 'application/json', body: shop })
  expect(added.status).toBe(201)
  const id = /"id":"(\d+)"/.exec(added.text)?.[1] ?? ''
  const roles = async () => (await send(0, { method: 'GET', path: '/relay/replicas', type: '', body: null })).text
  // Each of the two replicas holds a role that the other lacks.
  await expect.poll(roles).toMatch(/"roles":\["(?:poller|janitor|dispatcher)[^[]*"roles":\["(?:poller|janitor|dispatcher)/)
  await push(replicas[0].publicUrl, pushBody({ trackingIds: ['AB123456789SE'] }))
  await push(replicas[1].publicUrl, 'no event')
  expect(ORDERS.length).toBeGreaterThan(20)
  const failed: string[] = []
  for (const route of ORDERS)
    for (const at of [1, 0]) {
      const request = requestOf(route)
      const path = request.path.replace(/^\/relay\/endpoints\/\d+/, `/relay/endpoints/${id}`)
      const { status, text } = await send(at, { ...request, path })
      if (status === 500 || text.includes('storage_unavailable')) failed.push(`${route} at ${at}: ${status} ${text}`)
    }
  const replay = { method: 'POST', path: `/relay/endpoints/${id}/replay`, type: 'application/json' }
  for (const at of [1, 0]) {
    const { status, text } = await send(at, { ...replay, body: '{"of":"shop","states":["dead"]}' })
    if (status >= 500) failed.push(`replay with of at ${at}: ${status} ${text}`)
  }
  expect(failed).toEqual([])
})
