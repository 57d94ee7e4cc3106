import { expect, test, vi } from 'vitest'
import { writeDeliveries } from '../support/delivery/many-deliveries.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

test('a replay of over 10,000 deliveries is a job that survives a restart and can be cancelled', async () => {
  const folder = temporaryFolder()
  const startOne = async () => {
    const relay = await relayOfTest({ delivery: { allowNetworks: ['127.0.0.0/8'] } }, { folder })
    return { relay, operate: await operatorOf(relay) }
  }
  const first = await startOne()
  const { body: endpoint } = await first.operate('POST', '/relay/endpoints', { name: 'shop', url: 'http://127.0.0.1:9/', enabled: false })
  await writeDeliveries(first.relay.databasePath, { endpointId: String(endpoint.id), count: 25_000, state: 3 })
  const replay = `/relay/endpoints/${String(endpoint.id)}/replay`
  expect((await first.operate('POST', replay, { since: 0, dryRun: true })).body).toMatchObject({ count: 10_001, more: true, dryRun: true })
  const begun = await first.operate('POST', replay, { since: 0 })
  expect(begun).toMatchObject({
    status: 202,
    headers: { location: '/relay/jobs/1' },
    body: { id: '1', kind: 'replay', by: 'admin', result: null },
  })
  const cancelled = await first.operate('POST', replay, { since: 0 })
  expect((await first.operate('DELETE', `/relay/jobs/${String(cancelled.body.id)}`)).body).toMatchObject({ id: '2', state: 'cancelled' })
  await first.relay.stop()
  const again = await startOne()
  const job = async () => (await again.operate('GET', '/relay/jobs/1')).body
  await vi.waitFor(async () => expect(await job()).toMatchObject({ state: 'done', result: { count: 25_000 } }))
  expect(await job()).toMatchObject({
    progress: { done: 25_000 },
    endedAt: expect.any(String),
    task: { endpoint: endpoint.id, states: ['dead', 'cancelled'] },
  })
  expect((await again.operate('GET', '/relay/jobs?limit=1')).body).toMatchObject({ jobs: [{ id: '2' }], next: '2' })
  expect((await again.operate('GET', '/relay/jobs/9')).status).toBe(404)
  expect((await again.operate('GET', '/relay/jobs?state=done')).status).toBe(400)
})
