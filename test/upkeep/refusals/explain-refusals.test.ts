import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Refusal, RefusedPush } from '../../../src/core/domain/ingest/refused-spells.ts'
import { signBody } from '../../../src/core/domain/ingest/signature.ts'
import { createRefusalSamples } from '../../../src/upkeep/refusals/refusal-samples.ts'

const KEY = 'a-shared-key-of-some-length'
const BODY = Buffer.from('{"status":"Ingested"}')

/** Opens the search with a clock of the test. Searches run only while the test lets them. */
function openWorld({ stepMs = 0 } = {}) {
  let nowMs = 10_000
  const refusals: Refusal[] = []
  const waiting: (() => void)[] = []
  const samples = createRefusalSamples(
    {
      clock: {
        now: () => 1_700_000_000_000,
        monotonic: () => {
          nowMs += stepMs
          return nowMs
        },
      },
      log: { warn: () => undefined },
      yieldToOthers: () => new Promise<void>((resolve) => waiting.push(resolve)),
      explained: (refusal) => refusals.push(refusal),
    },
    { push: [{ name: 'webhook.sharedKeys[0]', key: KEY }], others: [] },
  )
  return {
    ...samples,
    refusals,
    waiting,
    pass: (ms: number) => {
      nowMs += ms
    },
    settled: () => new Promise<void>((resolve) => setImmediate(resolve)),
  }
}

function refusedPush(more: Partial<RefusedPush> = {}, headers: Readonly<Record<string, string>> = {}): RefusedPush {
  return {
    body: BODY,
    signatures: [signBody(Buffer.from(`${BODY.toString()}\n`), KEY)],
    address: '192.0.2.7',
    header: (name) => headers[name] ?? null,
    ...more,
  }
}

test('a refusal is explained with its sender, allowed headers, size and digest', async () => {
  const { take, refusals, settled } = openWorld()
  take(refusedPush({}, { 'user-agent': `agent ${'x'.repeat(300)}`, authorization: 'Bearer secret', 'x-request-id': `id-${KEY}` }))
  await settled()
  expect(refusals).toEqual([
    {
      verdict: 'explained',
      key: 'webhook.sharedKeys[0]',
      causes: [{ code: 'body_trailing_newline', detail: null }],
      isCutShort: false,
      atMs: 1_700_000_000_000,
      address: '192.0.2.7',
      headers: { 'user-agent': `agent ${'x'.repeat(194)}`, 'x-request-id': '[a key]' },
      body: { bytes: BODY.length, sha256: createHash('sha256').update(BODY).digest('hex') },
    },
  ])
  expect(JSON.stringify(refusals)).not.toContain(KEY)
})

test('at most one refusal a second is examined, however many there are', async () => {
  const { take, isDue, refusals, settled, pass } = openWorld()
  for (let nth = 0; nth < 1000; nth++) take(refusedPush())
  await settled()
  pass(999)
  take(refusedPush())
  expect([isDue(), refusals.length]).toEqual([false, 1])
  pass(1)
  expect(isDue()).toBe(true)
  take(refusedPush())
  await settled()
  expect(refusals.length).toBe(2)
})

test('a search pauses after each millisecond, and then none begins for fifty times as long', async () => {
  const { take, isDue, refusals, waiting, settled, pass } = openWorld({ stepMs: 1 })
  take(refusedPush({ signatures: [signBody(BODY, 'a key that nobody has here')] }))
  let turns = 0
  while (refusals.length === 0) {
    waiting.shift()?.()
    await settled()
    turns++
  }
  expect(turns).toBeGreaterThan(100)
  pass(turns * 40)
  expect(isDue()).toBe(false)
  pass(turns * 200)
  expect(isDue()).toBe(true)
})

test('only one refusal is examined at a time, and the memory of its body may be reused at once', async () => {
  const { take, isDue, refusals, waiting, settled, pass } = openWorld({ stepMs: 1 })
  const body = Buffer.from(BODY)
  take(refusedPush({ body }))
  body.fill(0)
  pass(10_000)
  expect(isDue()).toBe(false)
  take(refusedPush({ address: '192.0.2.8' }))
  for (; refusals.length === 0; await settled()) waiting.shift()?.()
  expect(refusals).toMatchObject([{ address: '192.0.2.7', verdict: 'explained' }])
})

test('a large body is not examined, and a removed key is recognised', async () => {
  const { take, refusals, settled, pass, replaceKeys } = openWorld()
  take(refusedPush({ body: Buffer.alloc(300 * 1024) }))
  await settled()
  replaceKeys({ push: [{ name: 'webhook.sharedKeys[0]', key: 'the-next-key-of-some-length' }], others: [] })
  pass(60_000)
  take(refusedPush({ signatures: [signBody(BODY, KEY)] }))
  await settled()
  expect(refusals).toMatchObject([
    { body: null, causes: [{ code: 'body_unread' }, { code: 'unknown' }] },
    { causes: [{ code: 'other_key', detail: 'a key that was taken out of webhook.sharedKeys' }] },
  ])
})

test('a mistake in the body is found within the limits, however many other keys there are', async () => {
  const { take, refusals, settled, replaceKeys } = openWorld()
  const keysNamed = (kind: string, count: number) =>
    Array.from({ length: count }, (_, nth) => ({ name: `${kind}[${nth}]`, key: `${kind}-key-${nth}-of-some-length` }))
  const push = keysNamed('push', 2)
  replaceKeys({ push, others: keysNamed('endpoint', 22) })
  const signed = JSON.stringify({ status: 'Ingested', detailedStatus: 'På väg' }).replace(
    /[^ -~]/g,
    (unit) => `\\u00${unit.charCodeAt(0).toString(16)}`,
  )
  const arrived = JSON.stringify({ detailedStatus: 'På väg', status: 'Ingested' }, null, 2)
  take(refusedPush({ body: Buffer.from(arrived), signatures: [signBody(Buffer.from(signed), push[1]?.key ?? '')] }))
  await settled()
  expect(refusals).toMatchObject([{ key: 'push[1]', causes: [{ code: 'body_reserialised' }] }])
})
