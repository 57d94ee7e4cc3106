import { expect, test } from 'vitest'
import type { Sandbox } from '../../../src/trial/sandbox/control-api.ts'
import { changedFaults, type Faults, noFaults, type SandboxOptions } from '../../../src/trial/sandbox/options.ts'
import { askStatus, askToken, type SpecAnswer, tokenOf } from '../../support/network/spec-client.ts'
import { expectedSignature, startWebhookReceiver, type WebhookReceiver } from '../../support/network/webhook-receiver.ts'
import { entriesOf, parsed, stillSandbox } from './sandbox-fixture.ts'

const account = { username: 'demo', password: 'demo-password' }

interface Pushed extends AsyncDisposable {
  readonly sandbox: Sandbox
  readonly receiver: WebhookReceiver
}

/** Opens a sandbox with these faults, and waits until all its events have been pushed to a receiver. */
async function pushed(
  faults: Partial<Faults>,
  options: SandboxOptions = {},
  statusOf: (nth: number) => number = () => 200,
): Promise<Pushed> {
  const receiver = await startWebhookReceiver()
  receiver.answer(statusOf)
  const sandbox = await stillSandbox({ parcels: 40, webhookUrls: [receiver.url], faults, ...options })
  await sandbox.finish()
  return {
    sandbox,
    receiver,
    [Symbol.asyncDispose]: async () => {
      await sandbox.stop()
      await receiver[Symbol.asyncDispose]()
    },
  }
}

const bodiesOf = ({ pushes }: WebhookReceiver): readonly string[] => pushes.map(({ body }) => body.toString('utf8')).toSorted()

/** Returns the bodies of each parcel's pushes in the order of their arrival. */
function arrivals({ receiver, sandbox }: Pushed): readonly (readonly string[])[] {
  const arrived = receiver.pushes.map(({ body }) => body.toString('utf8'))
  return sandbox.world.parcels().map(({ pushes }) => {
    const own = new Set(pushes.map(({ body }) => body))
    return arrived.filter((body) => own.has(body))
  })
}

test('without faults every event is pushed once and signed, in its parcel’s order', async () => {
  await using run = await pushed({}, { sharedKey: 'nyckel-åäö-0123456789' })
  const { sandbox, receiver } = run
  const { pushes } = sandbox.stats()
  expect(pushes).toMatchObject({
    silenced: 0,
    lost: 0,
    duplicated: 0,
    reordered: 0,
    waiting: 0,
    failed: 0,
    answers: { 200: pushes.events },
  })
  expect(receiver.pushes).toHaveLength(pushes.events)
  expect(arrivals(run)).toEqual(sandbox.world.parcels().map((parcel) => parcel.pushes.map(({ body }) => body)))
  for (const { body, headers } of receiver.pushes) {
    expect(headers['x-service-hmac-sha256']).toBe(expectedSignature(body, 'nyckel-åäö-0123456789'))
    expect(headers['content-type']).toBe('application/json')
  }
})

test('loss drops about the requested fraction of pushes, and lists them', async () => {
  await using run = await pushed({ loss: 0.25 })
  const { events, lost } = run.sandbox.stats().pushes
  expect(lost / events).toBeGreaterThan(0.15)
  expect(lost / events).toBeLessThan(0.35)
  const records = run.sandbox.world.parcels().flatMap(({ pushes }) => pushes)
  expect(records.filter(({ fate }) => fate === 'lost')).toHaveLength(lost)
  expect(bodiesOf(run.receiver)).toEqual(
    records
      .filter(({ fate }) => fate === 'sent')
      .map(({ body }) => body)
      .toSorted(),
  )
})

test('duplicates are pushes with the same bytes', async () => {
  await using run = await pushed({ duplicates: 0.3 })
  const { events, duplicated, sent } = run.sandbox.stats().pushes
  expect(duplicated / events).toBeGreaterThan(0.2)
  expect(duplicated / events).toBeLessThan(0.4)
  expect(sent).toBe(events + duplicated)
  const records = run.sandbox.world.parcels().flatMap(({ pushes }) => pushes)
  expect(bodiesOf(run.receiver)).toEqual(records.flatMap(({ body, copies }) => Array.from({ length: copies }, () => body)).toSorted())
})

test('reorder shuffles a parcel’s pushes, loses none, and counts the overtaken ones', async () => {
  // Use a world without equal entries, because the test could not tell which of two equal bodies was overtaken.
  await using run = await pushed({ reorder: 100 }, { hard: 0 })
  const { events, reordered } = run.sandbox.stats().pushes
  expect(run.receiver.pushes).toHaveLength(events)
  const overtaken = run.sandbox.world.parcels().flatMap(({ pushes }, nth) => {
    const places = (arrivals(run)[nth] ?? []).map((arrived) => pushes.findIndex(({ body }) => body === arrived))
    return places.filter((place, at) => places.slice(0, at).some((before) => before > place))
  })
  expect(reordered).toBeGreaterThan(20)
  expect(overtaken).toHaveLength(reordered)
})

test('a reorder window that does not fill up still releases its events', async () => {
  await using receiver = await startWebhookReceiver()
  await using sandbox = await stillSandbox({ parcels: 1, webhookUrls: [receiver.url], faults: { reorder: 1000 } })
  sandbox.scan(sandbox.world.parcels()[0]?.trackingNumber ?? '', { status: 'Created' })
  expect(sandbox.stats().pushes.waiting).toBe(1)
  await expect.poll(() => receiver.pushes.length).toBe(1)
})

test('the fault "delay" delays each push by the given time', async () => {
  await using receiver = await startWebhookReceiver()
  await using sandbox = await stillSandbox({ parcels: 1, webhookUrls: [receiver.url], faults: { delayMs: 120 } })
  const before = performance.now()
  sandbox.scan(sandbox.world.parcels()[0]?.trackingNumber ?? '', { status: 'Created' })
  await sandbox.settle()
  expect(performance.now() - before).toBeGreaterThanOrEqual(115)
  expect(receiver.pushes).toHaveLength(1)
})

test('silence stops pushes but not the pull API, until it is switched off', async () => {
  await using run = await pushed({ silence: true })
  const { sandbox, receiver } = run
  expect(receiver.pushes).toHaveLength(0)
  expect(sandbox.stats().pushes.silenced).toBe(sandbox.stats().pushes.events)
  const parcel = sandbox.world.parcels()[0]
  expect(entriesOf(parcel?.answers.en ?? '').length).toBe(parcel?.entriesPlanned)
  sandbox.setFaults({ silence: false })
  sandbox.scan(parcel?.trackingNumber ?? '', { status: 'ReturnStarted' })
  await sandbox.settle()
  expect(receiver.pushes.map(({ body }) => parsed(body.toString()).status)).toEqual(['ReturnStarted'])
})

test('a refused push is not retried, and its status is reported', async () => {
  await using run = await pushed({}, { parcels: 5 }, (nth) => (nth % 3 === 0 ? 503 : 202))
  const { events, sent, accepted, failed, answers } = run.sandbox.stats().pushes
  expect(sent).toBe(events)
  expect(answers).toEqual({ 202: accepted, 503: failed })
  expect(failed).toBe(Math.ceil(events / 3))
  const attempts = run.sandbox.world.parcels().flatMap(({ pushes }) => pushes.flatMap((record) => record.attempts))
  expect(attempts.filter(({ status }) => status === 503)).toHaveLength(failed)
})

test('retries repeat a refused push as often as requested', async () => {
  await using run = await pushed({}, { parcels: 1, retries: 2, retryDelayMs: 1 }, (nth) => (nth < 2 ? 500 : 200))
  const { events, sent, accepted } = run.sandbox.stats().pushes
  expect(sent).toBe(events + 2)
  expect(accepted).toBe(events)
})

test('an unreachable receiver is reported with its error, and a redirect is not followed', async () => {
  const receiver = await startWebhookReceiver()
  await receiver[Symbol.asyncDispose]()
  await using sandbox = await stillSandbox({ parcels: 1, webhookUrls: [receiver.url] })
  await sandbox.finish()
  const { events, answers } = sandbox.stats().pushes
  expect(answers).toEqual({ ECONNREFUSED: events })
  await using run = await pushed({}, { parcels: 1 }, () => 302)
  expect(run.sandbox.stats().pushes).toMatchObject({
    accepted: 0,
    givenUp: run.sandbox.stats().pushes.events,
    answers: { 302: run.receiver.pushes.length },
  })
})

test('every configured webhook gets every push', async () => {
  await using second = await startWebhookReceiver()
  await using first = await startWebhookReceiver()
  await using sandbox = await stillSandbox({ parcels: 5, webhookUrls: [first.url, second.url] })
  await sandbox.finish()
  expect(first.pushes.length).toBe(sandbox.stats().pushes.events)
  expect(bodiesOf(second)).toEqual(bodiesOf(first))
})

async function asked(
  faults: Partial<Faults>,
  times = 200,
): Promise<{ readonly answers: readonly SpecAnswer[]; readonly sandbox: Sandbox }> {
  await using sandbox = await stillSandbox({ parcels: 1 })
  await sandbox.finish()
  const number = sandbox.world.parcels()[0]?.trackingNumber ?? ''
  const token = await tokenOf({ ...account, baseUrl: sandbox.url })
  sandbox.setFaults(faults)
  const answers = await Promise.all(Array.from({ length: times }, () => askStatus(sandbox.url, { number, kind: 'all' }, token)))
  return { answers, sandbox }
}

test.each([
  [{ unauthorized: 0.3 }, [401]],
  [{ rateLimited: 0.3 }, [429]],
  [{ serverErrors: 0.3 }, [500, 502, 503]],
])('faults %o answer the given fraction of the status calls with one of %o', async (faults, statuses) => {
  const { answers, sandbox } = await asked(faults)
  const bad = answers.filter(({ status }) => status !== 200)
  expect(bad.length).toBeGreaterThan(30)
  expect(bad.length).toBeLessThan(90)
  expect([...new Set(bad.map(({ status }) => status))].toSorted((a, b) => a - b)).toEqual(statuses)
  const calls = sandbox.stats().calls['/v1/status/{number}/all'] ?? {}
  expect(calls['200']).toBe(200 - bad.length)
  expect(Object.values(calls).reduce((sum, count) => sum + count, 0)).toBe(200)
})

test('a 429 says when to try again', async () => {
  await using sandbox = await stillSandbox({ faults: { rateLimited: 1, retryAfterSeconds: 7 } })
  const answer = await fetch(`${sandbox.url}/v1/status/AB123456789SE/all`)
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '7'])
})

test('latency delays every answer, and stopping does not wait for it', async () => {
  await using sandbox = await stillSandbox({ faults: { latencyMs: 100 } })
  const before = performance.now()
  await askToken({ ...account, baseUrl: sandbox.url })
  expect(performance.now() - before).toBeGreaterThanOrEqual(95)
  sandbox.setFaults({ latencyMs: 600_000 })
  const stuck = askToken({ ...account, baseUrl: sandbox.url }).catch(() => 'closed')
  await fetch(`${sandbox.url}/sandbox/stats`)
  // The answer would come long after the end of this test.
  await sandbox.stop()
  expect(await stuck).toBe('closed')
})

test.each(['opaque', 'jwt'] as const)('%s tokens end after their lifetime, or when they are revoked', async (tokenForm) => {
  let nowMs = Date.UTC(2026, 0, 1)
  await using sandbox = await stillSandbox({ tokenForm, now: () => nowMs, faults: { tokenLifetimeMs: 60_000 } })
  const status = async (token: string) => (await askStatus(sandbox.url, { number: 'AB123456789SE', kind: 'all' }, token)).status
  const first = await tokenOf({ ...account, baseUrl: sandbox.url })
  nowMs += 59_999
  const second = await tokenOf({ ...account, baseUrl: sandbox.url })
  expect(await status(first)).toBe(404)
  nowMs += 1
  expect(await status(first)).toBe(401)
  expect(await status(second)).toBe(404)
  sandbox.revokeTokens()
  expect(await status(second)).toBe(401)
  expect(sandbox.stats().tokensIssued).toBe(2)
  expect(first.split('.')).toHaveLength(tokenForm === 'jwt' ? 3 : 1)
  const claims = Buffer.from(first.split('.')[1] ?? '', 'base64url').toString()
  if (tokenForm === 'jwt') expect(parsed(claims).exp).toBe(Date.UTC(2026, 0, 1) / 1000 + 60)
})

test('language gaps leave some entries in a single language, the same in pushes and answers', async () => {
  await using run = await pushed({ languageGaps: 0.5 }, { parcels: 20, hard: 0 })
  let gaps = 0
  let entries = 0
  for (const { answers, pushes } of run.sandbox.world.parcels()) {
    const [english, swedish] = [entriesOf(answers.en), entriesOf(answers.sv)]
    for (const [nth, entry] of english.entries()) {
      const push = pushes.map(({ body }) => parsed(body)).find(({ eventTime }) => eventTime === entry.eventTimestamp)
      const said = JSON.stringify(push?.detailedStatusDescription)
      const spoken = { en: entry.detailedStatusDescription !== '', sv: swedish[nth]?.detailedStatusDescription !== '' }
      expect({ en: said.includes('"en"'), sv: said.includes('"sv"') }).toEqual(spoken)
      expect(spoken.en || spoken.sv).toBe(true)
      if (!spoken.en) expect(entry.consumerDescription).toBeNull()
      entries += 1
      if (!(spoken.en && spoken.sv)) gaps += 1
    }
  }
  expect(gaps / entries).toBeGreaterThan(0.35)
  expect(gaps / entries).toBeLessThan(0.65)
})

test.each([{ los: 1 }, { loss: 1.5 }, { loss: -1 }, { loss: '1' }, { silence: 1 }, { delayMs: Number.NaN }, null, []])(
  'faults %o are refused',
  (change) => {
    expect(() => changedFaults(noFaults, change)).toThrow(RangeError)
  },
)
