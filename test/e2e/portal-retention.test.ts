import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'

test('the page of retention shows what the last pass did, and starts one', async () => {
  const relay = await relayOfTest({})
  const visitor = await loggedInAt(relay.internalUrl)
  expect((await visitor.get('/retention')).text).toContain('No pass has ended yet')
  expect((await push(relay.publicUrl, pushBody({ eventTime: new Date().toISOString() }))).status).toBe(200)
  expect((await visitor.post('/retention', {})).status).toBe(303)
  const operate = await operatorOf(relay)
  await expect.poll(async () => (await operate('GET', '/relay/retention')).body.last, { timeout: 60_000 }).toMatchObject({ removed: {} })
  expect((await visitor.get('/retention')).text).toContain('The last pass ended at')
  expect((await operate('POST', '/relay/retention?dryRun=true')).body).toMatchObject({ dryRun: true, wouldGo: { parcels: { count: 0 } } })
  const metrics = await (await fetch(`${relay.internalUrl}/metrics`)).text()
  expect(metrics).toMatch(/^relay_retention_held\{kind="parcels"\} 0$/m)
  expect(metrics).toMatch(/^relay_retention_pass_timestamp_seconds \d/m)
})
