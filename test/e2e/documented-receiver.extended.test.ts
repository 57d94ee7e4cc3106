import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { freePort } from '../../src/cli/demo/postgres/throwaway-server.ts'
import { pushBody } from '../support/history/builders.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { ownGroup, tieToTest } from '../support/runner/tied-process.ts'

const KEY = 'the-key-of-the-documented-receiver'

test('the receiver in docs/endpoints.md takes each event once, with either key, if it is signed', async () => {
  const [, code] = /```js\n(.*?)```/s.exec(readFileSync('docs/endpoints.md', 'utf8')) ?? []
  const folder = temporaryFolder()
  const file = join(folder, 'receiver.mjs')
  writeFileSync(file, code ?? '')
  const port = await freePort()
  let printed = ''
  const startWith = (key: string) => {
    const receiver = tieToTest(spawn(process.execPath, [file], { ...ownGroup, env: { ENDPOINT_KEY: key, PORT: String(port) } }))
    receiver.stdout.on('data', (text: Buffer) => {
      printed += text.toString()
    })
    return receiver
  }
  const receiver = startWith(KEY)
  const url = `http://127.0.0.1:${port}/`
  const statusOf = async (signature: string) => {
    const response = await fetch(url, { method: 'POST', body: '{}', headers: { 'x-service-hmac-sha256': signature } })
    return response.status
  }
  const listens = () => vi.waitFor(async () => expect(await statusOf('bm90IHRoZSBzaWduYXR1cmU=')).toBe(401))
  await listens()

  const relay = await relayOfTest({ delivery: { allowNetworks: ['127.0.0.0/8'] } })
  const operate = await operatorOf(relay)
  const { body } = await operate('POST', '/relay/endpoints', { name: 'documented', url, sharedKey: KEY })
  const path = `/relay/endpoints/${String(body.id)}`
  expect((await operate('POST', `${path}/test`)).body).toMatchObject({ status: 204 })
  const delivered = async () => (await operate('GET', '/relay/deliveries?state=delivered')).body.deliveries
  await push(relay.publicUrl, pushBody({ status: 'DeliverySucceeded' }))
  await vi.waitFor(async () => expect(await delivered()).toMatchObject([{ attemptCount: 1 }]))
  expect((await operate('POST', `${path}/replay`, { since: 0, state: 'delivered' })).body).toMatchObject({ count: 1 })
  await vi.waitFor(async () => expect(await delivered()).toMatchObject([{ state: 'delivered' }]))
  await push(relay.publicUrl, pushBody({ trackingIds: ['2002'], status: 'Created' }))
  await vi.waitFor(async () => expect(await delivered()).toHaveLength(2))
  await vi.waitFor(() => expect(printed.split('\n')).toHaveLength(3))
  expect(printed).toMatch(/^\d+ DeliverySucceeded\n\d+ Created\n$/)

  const { sharedKey } = (await operate('POST', `${path}/rotate`)).body
  await push(relay.publicUrl, pushBody({ trackingIds: ['2002'], status: 'Ingested', eventTime: '2026-03-01T11:00:00.000Z' }))
  await vi.waitFor(async () => expect(await delivered()).toHaveLength(3))
  receiver.kill()
  await once(receiver, 'exit')
  startWith(String(sharedKey))
  await listens()
  await push(relay.publicUrl, pushBody({ trackingIds: ['2002'], status: 'TerminalUpdated', eventTime: '2026-03-01T12:00:00.000Z' }))
  await vi.waitFor(async () => expect(await delivered()).toHaveLength(4))
  expect((await operate('GET', path)).body).toMatchObject({ nextKeyFrom: expect.any(String) })
})
