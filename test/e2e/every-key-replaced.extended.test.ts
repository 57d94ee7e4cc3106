import { hash } from '@node-rs/argon2'
import { expect, onTestFinished, test, vi } from 'vitest'
import { signBody } from '../../src/core/domain/ingest/signature.ts'
import { pushBody } from '../support/history/builders.ts'
import { expectedSignature, startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { loadConfig } from '../support/relay/load-config.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { ADMIN, ask, logIn, push, type Sections, SHARED_KEY, SHOP, startTestRelay, writeConfig } from '../support/relay/relay.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

const OTHER_KEY = 'another-shared-key-for-tests'
const NEW_PASSWORD = 'a-new-password-of-the-shop'
const [FIRST, SECOND] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64'))

async function startRelay(sections: Sections) {
  const folder = temporaryFolder()
  const base = { delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['1h'] } }
  const relay = await startTestRelay(folder, NO_CARRIER, { ...base, ...sections })
  onTestFinished(() => relay.stop())
  let current = sections
  const reload = async (changed: Sections) => {
    current = { ...current, ...changed }
    await relay.reload(loadConfig(writeConfig(folder, NO_CARRIER, { ...base, ...current }), process.env))
  }
  return { ...relay, reload, operate: await operatorOf(relay) }
}

/** Repeats the work until `stop` is called. `stop` resolves with the number of repetitions. */
function keepDoing(work: (nth: number) => Promise<void>) {
  let isOver = false
  const running = (async () => {
    let count = 0
    while (!isOver) await work(count++)
    return count
  })()
  return {
    stop() {
      isOver = true
      return running
    },
  }
}

const options = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }
const adminHash = hash(ADMIN.password, options)

async function appsWith(...shopPasswords: readonly string[]) {
  const hashes = await Promise.all(shopPasswords.map((password) => hash(password, options)))
  return [
    { username: SHOP.username, passwordHash: hashes.length === 1 ? hashes[0] : hashes, scopes: ['status'] },
    { username: ADMIN.username, passwordHash: await adminHash, scopes: ['status', 'admin'] },
  ]
}

test('W4: replacing every key refuses no push, no app and no delivery', async () => {
  const receiver = await startWebhookReceiver()
  onTestFinished(() => receiver[Symbol.asyncDispose]())
  let [endpointKey, carrierKey] = ['', SHARED_KEY]
  receiver.answer((nth) => {
    const { body = Buffer.of(), headers = {} } = receiver.pushes[nth] ?? {}
    return headers['x-service-hmac-sha256'] === expectedSignature(body, endpointKey) ? 204 : 401
  })
  const relay = await startRelay({ apps: await appsWith(SHOP.password) })
  const { operate, reload } = relay
  const added = (await operate('POST', '/relay/endpoints', { name: 'shop', url: receiver.url })).body
  endpointKey = String(added.sharedKey)
  await push(relay.publicUrl, pushBody())
  const token = await logIn(relay.internalUrl)
  const statuses = { pushes: new Set<number>(), apps: new Set<number>() }
  const pushing = keepDoing(async (nth) => {
    const body = pushBody({ eventTime: new Date(Date.UTC(2026, 2, 1, 10) + nth * 1000).toISOString() })
    statuses.pushes.add((await push(relay.publicUrl, body, { 'x-service-hmac-sha256': signBody(body, carrierKey) })).status)
  })
  const asking = keepDoing(async () => void statuses.apps.add((await ask(relay.internalUrl, token, '/v1/status/1001/all')).status))
  const whileItGoesOn = () => {
    const before = receiver.pushes.length
    return vi.waitFor(() => expect(receiver.pushes.length).toBeGreaterThan(before + 3))
  }
  await whileItGoesOn()

  // The carrier's key: both keys are valid until the carrier uses the new one.
  await reload({ webhook: { sharedKeys: [OTHER_KEY, SHARED_KEY] } })
  carrierKey = OTHER_KEY
  await whileItGoesOn()

  // The at-rest key: replace the key file beside the store by a key in the config, and this key by another.
  for (const atRestKeys of [[FIRST], [SECOND, FIRST]]) {
    await reload({ secrets: { atRestKeys } })
    expect((await operate('POST', '/relay/secrets/reseal')).body).toMatchObject({ resealed: 1, upToDate: 0, unreadable: [] })
    await whileItGoesOn()
  }
  await reload({ secrets: { atRestKeys: [SECOND] } })
  expect((await operate('POST', '/relay/secrets/reseal')).body).toMatchObject({ resealed: 0, upToDate: 1, unreadable: [] })

  // The key of an endpoint: the receiver still checks the old key, so the relay signs with the old key too.
  const rotated = (await operate('POST', `/relay/endpoints/${String(added.id)}/rotate`)).body
  await whileItGoesOn()
  expect(String(rotated.sharedKey)).not.toBe(endpointKey)

  // The key of tokens: existing tokens stay valid, and new ones are valid too.
  expect((await operate('POST', '/relay/secrets/rotate-tokens')).body).toEqual({ validUntil: expect.any(String) })
  expect((await ask(relay.internalUrl, await logIn(relay.internalUrl), '/v1/status/1001/all')).status).toBe(200)
  await whileItGoesOn()

  const [pushed, asked] = [await pushing.stop(), await asking.stop()]
  expect(Math.min(pushed, asked)).toBeGreaterThan(20)
  expect(statuses).toEqual({ pushes: new Set([200]), apps: new Set([200]) })
  await vi.waitFor(async () => expect((await operate('GET', `/relay/endpoints/${String(added.id)}`)).body).toMatchObject({ waiting: 0 }))
  expect(receiver.pushes).toHaveLength(pushed)

  // The password of an app: both passwords are valid until the app uses the new one.
  await reload({ apps: await appsWith(SHOP.password, NEW_PASSWORD) })
  const login = { username: SHOP.username, password: NEW_PASSWORD }
  for (const one of [SHOP, login])
    expect((await ask(relay.internalUrl, await logIn(relay.internalUrl, one), '/v1/status/1001/all')).status).toBe(200)

  expect(JSON.stringify((await operate('GET', '/relay/audit')).body)).toMatch(/secrets\.token_key_replaced.*secrets\.resealed/)
  await reload({ apps: await appsWith(NEW_PASSWORD) })
  expect((await ask(relay.internalUrl, token, '/v1/status/1001/all')).status).toBe(401)
})

test('a reload that drops an at-rest key still in use is refused, and says what to do', async () => {
  const { operate, reload } = await startRelay({ secrets: { atRestKeys: [FIRST] } })
  await operate('POST', '/relay/endpoints', { name: 'shop', url: 'http://127.0.0.1:9/', enabled: false })
  await expect(reload({ secrets: { atRestKeys: [SECOND] } })).rejects.toThrow(
    /secrets\.atRestKeys: .*: shop\. Keep the key .*secrets reseal/,
  )
  expect((await operate('POST', '/relay/secrets/reseal')).body).toMatchObject({ resealed: 0, upToDate: 1 })
})

test('tokens that an operator has ended are refused, even in an open session', async () => {
  const { operate, internalUrl } = await startRelay({})
  const token = await logIn(internalUrl)
  expect((await ask(internalUrl, token, '/v1/status/1001/all')).status).not.toBe(401)
  expect((await operate('POST', '/relay/secrets/rotate-tokens', { at: 'later' })).status).toBe(400)
  expect((await operate('POST', '/relay/secrets/rotate-tokens', { at: 'now' })).body).toEqual({ validUntil: null })
  expect((await ask(internalUrl, token, '/v1/status/1001/all')).status).toBe(401)
  expect((await operate('GET', '/relay/audit')).status).toBe(401)
  expect((await ask(internalUrl, await logIn(internalUrl), '/v1/status/1001/all')).status).not.toBe(401)
})
