import { expect, test, vi } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push, type Sections } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

/** Longer than any step takes unless it hangs. */
const LATE = { timeout: 60_000, interval: 50 }

async function start(folder: string, sections: Sections) {
  const { removeAfter = '15m', ...rest } = sections
  const delivery = { allowNetworks: ['127.0.0.0/8'], removeAfter }
  const relay = await relayOfTest({ delivery, ...rest }, { folder })
  const operate = await operatorOf(relay)
  const endpoints = async () => {
    const { body } = await operate('GET', '/relay/endpoints')
    return Array.isArray(body.endpoints) ? body.endpoints.map(({ id, disabledBecause }) => ({ id: String(id), disabledBecause })) : []
  }
  return { ...relay, operate, endpoints }
}

async function startNamed() {
  const folder = temporaryFolder()
  const receiver = await receiverOfTest()
  const named = { endpoints: [{ name: 'shop', url: receiver.url, sharedKey: 'the-key-of-this-endpoint' }] }
  return { folder, receiver, named, first: await start(folder, named) }
}

test('7.4: an endpoint that a new config omits is paused, and resumes with the same id', async () => {
  const { folder, receiver, named, first } = await startNamed()
  const [endpoint] = await first.endpoints()
  await first.stop()
  const second = await start(folder, { endpoints: [] })
  expect(await second.endpoints()).toEqual([{ id: endpoint?.id, disabledBecause: 'unnamed' }])
  expect(second.lines).toContainEqual(expect.objectContaining({ message: expect.stringContaining('no config names an endpoint any more') }))
  const body = pushBody()
  expect((await push(second.publicUrl, body)).status).toBe(200)
  await second.stop()
  expect(receiver.pushes).toHaveLength(0)
  const third = await start(folder, named)
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(1), LATE)
  expect(await third.endpoints()).toEqual([endpoint])
}, 120_000)

test('7.4: an unnamed endpoint is removed after delivery.removeAfter, or by an operator', async () => {
  const { folder, first } = await startNamed()
  const [endpoint] = await first.endpoints()
  await first.stop()
  const second = await start(folder, { endpoints: [] })
  expect((await second.operate('DELETE', `/relay/endpoints/${endpoint?.id}`)).status).toBe(204)
  expect(await second.endpoints()).toEqual([])

  const other = await startNamed()
  await other.first.stop()
  const brief = await start(other.folder, { endpoints: [], removeAfter: '1s' })
  await vi.waitFor(async () => expect(await brief.endpoints()).toEqual([]), LATE)
  expect(brief.lines).toContainEqual(
    expect.objectContaining({ message: expect.stringContaining('no config has named for `delivery.removeAfter` were removed') }),
  )
}, 120_000)
