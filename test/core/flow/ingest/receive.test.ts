import { expect, test } from 'vitest'
import { AppError } from '../../../../src/core/domain/errors.ts'
import type { RecordOutcome } from '../../../../src/core/domain/history/recording.ts'
import type { IncomingPush } from '../../../../src/core/domain/ingest/inbox.ts'
import { checkPushBody, parsePush, parseWebhookEvent } from '../../../../src/core/domain/ingest/parse-push.ts'
import type { RefusedPush } from '../../../../src/core/domain/ingest/refused-spells.ts'
import { createVerifier, signBody } from '../../../../src/core/domain/ingest/signature.ts'
import { createComebacks, createReceive } from '../../../../src/core/flow/ingest/receive.ts'

const KEY = 'a-shared-key-of-some-length'
const body = Buffer.from('{"status":"Ingested"}')
const signatures = [signBody(body, KEY)]
const origin = () => ({ address: '192.0.2.7', header: () => null })

function createWorld(submit: (push: IncomingPush) => Promise<RecordOutcome>, admit = () => undefined) {
  const counted: (readonly [string, number | null])[] = []
  const examined: RefusedPush[] = []
  const comebacks: string[] = []
  const receive = createReceive({
    verifier: createVerifier(['an-older-key-of-some-length', KEY]),
    parseEvent: parseWebhookEvent,
    recorder: { submit },
    admit,
    meter: { pushReceived: (outcome, keyIndex) => void counted.push([outcome, keyIndex]) },
    clock: { now: () => 1234, monotonic: () => 0 },
    refusals: { isDue: () => examined.length < 2, take: (refused) => void examined.push(refused) },
    comebacks: createComebacks({ tell: (what) => void comebacks.push(what), clock: { monotonic: () => 0 } }),
  })
  return { receive, counted, examined, comebacks }
}

test('I1, I10: a verified push is recorded with its bytes, its time and the matching key', async () => {
  const pushes: IncomingPush[] = []
  const { receive, counted } = createWorld(async (push) => {
    pushes.push(push)
    return { kind: 'duplicate' }
  })
  expect(await receive({ body, signatures, contentEncoding: 'gzip', origin })).toEqual({ kind: 'duplicate' })
  expect(pushes).toEqual([parsePush({ body, contentEncoding: 'gzip', receivedAtMs: 1234, keyIndex: 1 })])
  expect(pushes[0]).toMatchObject({ body, receivedAtMs: 1234, keyIndex: 1, reading: { ok: false, reason: 'content_encoding' } })
  expect(counted).toEqual([['duplicate', 1]])
})

test.each([[[]], [['']], [[signatures[0] ?? '', signatures[0] ?? '']], [['bad', signatures[0] ?? '']], [[signBody(body, 'another-key')]]])(
  'I2, I3, I4: a push with the signature headers %j is not recorded',
  async (given) => {
    const { receive, counted } = createWorld(() => Promise.reject(new Error('recorded')))
    await expect(receive({ body, signatures: given, contentEncoding: null, origin })).rejects.toMatchObject({ code: 'signature_invalid' })
    expect(counted).toEqual([['signature_invalid', null]])
  },
)

test('a check push is answered, not recorded, refused with pushes, but not counted as refused', async () => {
  const check = Buffer.from(checkPushBody('0f8b2c1e-0000-4000-8000-000000000000'))
  const request = { body: check, signatures: [signBody(check, KEY)], contentEncoding: null, origin }
  const record = () => Promise.reject(new Error('recorded'))
  expect(await createWorld(record).receive(request)).toEqual({ kind: 'check' })
  const refusing = createWorld(record, () => {
    throw new AppError('storage_unavailable', 'The disk is full.')
  })
  await expect(refusing.receive(request)).rejects.toMatchObject({ code: 'storage_unavailable' })
  expect(refusing.counted).toEqual([['check', 1]])
})

test('a push that could not be stored is recognised when it comes again, and is counted once', async () => {
  let isDown = true
  const { receive, comebacks } = createWorld(async () => {
    if (isDown) throw new Error('SQLITE_FULL')
    return { kind: 'duplicate' }
  })
  const send = (sent: Buffer) => receive({ body: sent, signatures: [signBody(sent, KEY)], contentEncoding: null, origin })
  const other = Buffer.from('{}')
  for (const sent of [body, body, other]) await expect(send(sent)).rejects.toMatchObject({ code: 'storage_unavailable' })
  expect(comebacks).toEqual(['first', 'first'])
  isDown = false
  for (const sent of [body, body, Buffer.from('{"new":1}')]) await send(sent)
  expect(comebacks).toEqual(['first', 'first', 'again'])
})

test('5.2: receiving resolves only after the recorder has resolved', async () => {
  const gate = Promise.withResolvers<RecordOutcome>()
  const { receive, counted } = createWorld(() => gate.promise)
  let settled = false
  const received = receive({ body, signatures, contentEncoding: null, origin }).finally(() => {
    settled = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect([settled, counted]).toEqual([false, []])
  gate.resolve({ kind: 'expired' })
  expect(await received).toEqual({ kind: 'expired' })
})

test('if the recorder fails, the error is storage_unavailable, with its Retry-After if any', async () => {
  const broken = createWorld(() => Promise.reject(new Error('SQLITE_FULL')))
  await expect(broken.receive({ body, signatures, contentEncoding: null, origin })).rejects.toMatchObject({
    code: 'storage_unavailable',
    retryAfterMs: 5000,
  })
  expect(broken.counted).toEqual([['storage_unavailable', 1]])
  const hinting = createWorld(() => Promise.reject(new AppError('storage_unavailable', 'full', { retryAfterMs: 7 })))
  await expect(hinting.receive({ body, signatures, contentEncoding: null, origin })).rejects.toMatchObject({ retryAfterMs: 7 })
})

test('a refused push is examined with its bytes and sender if a search is due', async () => {
  const { receive, examined } = createWorld(async () => ({ kind: 'duplicate' }))
  await receive({ body, signatures, contentEncoding: null, origin })
  const refused = { body, signatures: [signBody(body, 'another-key')], contentEncoding: null, origin }
  for (let nth = 0; nth < 3; nth++) await receive(refused).catch(() => undefined)
  expect(examined).toMatchObject(Array.from({ length: 2 }, () => ({ body, signatures: refused.signatures, address: '192.0.2.7' })))
})
