import { expect, test } from 'vitest'
import { writeDeliveries } from '../support/delivery/many-deliveries.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { type ADMIN, SHOP } from '../support/relay/relay.ts'
import { relayOfFile } from '../support/relay/relay-of-file.ts'

const ofFile = relayOfFile('http://127.0.0.1:9', { delivery: { allowNetworks: ['127.0.0.0/8'] } })

const loggedIn = (login?: typeof ADMIN) => loggedInAt(ofFile().internalUrl, login)

test('jobs are shown with their progress, and can be stopped', async () => {
  const { databasePath } = ofFile()
  const operator = await operatorOf(ofFile())
  const visitor = await loggedIn()
  expect((await visitor.get('/jobs')).text).toContain('There was no job yet')
  const { id } = (await operator('POST', '/relay/endpoints', { name: 'shop', url: 'http://127.0.0.1:9/', enabled: false })).body
  await writeDeliveries(databasePath, { endpointId: String(id), count: 25_000, state: 3 })
  for (let nth = 0; nth < 2; nth++) expect((await operator('POST', `/relay/endpoints/${String(id)}/replay`, { since: 0 })).status).toBe(202)
  expect((await visitor.get('/jobs')).text).toContain('Stop job 2')
  expect((await visitor.post('/jobs/2/cancel')).headers.get('location')).toBe('/jobs')
  const text = async () => (await visitor.get('/jobs')).text.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ')
  await expect.poll(text).toMatch(/2 Replay to shop stopped .* 1 Replay to shop done 25,000 admin/)
  expect((await visitor.get('/jobs')).text).not.toContain('Stop job')
})

test('only admins see jobs', async () => {
  const visitor = await loggedIn(SHOP)
  expect((await visitor.get('/jobs')).status).toBe(403)
  expect((await visitor.post('/jobs/1/cancel')).status).toBe(403)
})
