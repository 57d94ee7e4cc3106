import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { closeOpened, openCarrier } from '../core/carrier/carrier-double.ts'
import { pushBody } from '../support/history/builders.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { internalRoutes, isWriting, requestOf } from '../support/portal/internal-routes.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { ADMIN, logIn, push } from '../support/relay/relay.ts'
import { byForm } from '../support/runner/long-form.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { spawnTraced } from '../support/store/strace.ts'

afterAll(closeOpened)

/** The parcel in the examples of the routes. */
const PARCEL = 'AB123456789SE'
const CODES = ['SQLITE_FULL', 'SQLITE_IOERR_FSYNC', 'SQLITE_BUSY', 'SQLITE_CORRUPT', 'SQLITE_READONLY']

test('every writing route answers 503, not 500, if the store is full, locked or damaged', async () => {
  await using receiver = await startWebhookReceiver()
  const carrier = await openCarrier()
  const folder = temporaryFolder()
  const failure = join(folder, 'failure')
  const sections = {
    upstream: { baseUrl: carrier.url },
    poll: { cron: '0 0 1 1 *' },
    delivery: { allowNetworks: ['127.0.0.0/8'] },
    backup: { directory: join(folder, 'backups') },
  }
  const relay = await spawnTraced(folder, { failure, sections })
  onTestFinished(() => relay.kill())
  const operator = await operatorOf(relay)
  expect((await operator('POST', '/relay/endpoints', { name: 'shop', url: receiver.url })).status).toBe(201)
  expect((await push(relay.publicUrl, pushBody({ trackingIds: [PARCEL] }))).status).toBe(200)
  expect((await push(relay.publicUrl, 'no event')).status).toBe(200)
  await expect
    .poll(async () => (await operator('GET', '/relay/deliveries?state=delivered')).text, { timeout: 60_000 })
    .toContain('"id":"1"')

  const token = await logIn(relay.internalUrl, ADMIN)
  const ask = async (route: string) => {
    const { method, path, type, body } = requestOf(route)
    const headers = { authorization: `Bearer ${token}`, ...(body === null ? {} : { 'content-type': type }) }
    const answer = await fetch(`${relay.internalUrl}${path}`, { method, headers, ...(body === null ? {} : { body }) })
    const problem: unknown = await answer.json()
    return { status: answer.status, retryAfter: Number(answer.headers.get('retry-after')), problem }
  }
  // The relay counts several calls to the carrier in advance, and saves that count before this call. So the calls below need no save.
  expect((await fetch(`${relay.internalUrl}/v1/status/AB000000003SE/all`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(
    200,
  )
  const routes = internalRoutes().filter(isWriting)
  expect(routes).toEqual(expect.arrayContaining(['DELETE /relay/endpoints/:id', 'PUT /relay/parcels/:identifier/watch']))
  // Replace the file in one step, because the store does not fail while the file is empty.
  const fail = (code: string) => {
    writeFileSync(`${failure}-next`, code)
    renameSync(`${failure}-next`, failure)
  }
  for (const code of CODES.slice(0, byForm(2, 2, CODES.length))) {
    fail(code)
    for (const route of routes) {
      const message = `${route} while the store says ${code}, with the request of its row in internal-routes.ts`
      const owed = {
        status: 503,
        retryAfter: expect.toSatisfy((seconds: number) => seconds > 0),
        problem: expect.objectContaining({ type: 'urn:parcel-relay:error:storage_unavailable' }),
      }
      // A GET writes only if the carrier answers in time. If the answer came from the store, try again.
      if (route.startsWith('GET ')) await expect.poll(() => ask(route), { message }).toEqual(owed)
      else expect(await ask(route), message).toEqual(owed)
    }
    expect((await push(relay.publicUrl, pushBody({ location: code }))).status, code).toBe(503)
    expect((await operator('GET', `/relay/parcels/${PARCEL}`)).status, code).toBe(200)
  }
  fail('')
  expect((await operator('PUT', '/relay/parcels/1002/watch')).status).toBe(201)
})
