import { expect, onTestFinished, test, vi } from 'vitest'
import { startSandbox } from '../../src/trial/sandbox/sandbox.ts'
import { createFeedConsumer, replayFeed } from '../support/delivery/feed-consumer.ts'
import { pushBody } from '../support/history/builders.ts'
import { fetchDocumented } from '../support/portal/api-document.ts'
import { loadConfig } from '../support/relay/load-config.ts'
import { ADMIN, ask, CARRIER_LOGIN, logIn, push, type Sections, SHARED_KEY, writeConfig } from '../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay/relay-of-file.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { byForm } from '../support/runner/long-form.ts'
import { pruneStoredFeed } from '../support/store/stored-rows.ts'

const ofFile = relayOfFile(NO_CARRIER, { serve: { fetchUnknown: false } })
const own = idsOfTest()
const PARCELS = byForm(16, 40)
/** An app asks for this many parcels at each step. */
const SOME = byForm(3, 6)

async function startRelay(carrierUrl = NO_CARRIER, sections: Sections = {}) {
  const relay = await relayOfTest({ serve: { fetchUnknown: false }, ...sections }, { carrierUrl })
  return { ...(await asAnApp(relay)), stop: relay.stop }
}

/** Returns the relay that the tests of this file share, and the end of its feed. */
async function share() {
  const relay = await asAnApp(ofFile())
  const { lastSequence } = Object(await (await relay.get('/relay/events?after=999999999999999')).json())
  return { ...relay, end: Number(lastSequence) }
}

async function asAnApp(relay: ReturnType<typeof ofFile>) {
  const token = await logIn(relay.internalUrl)
  const get = (path: string) => ask(relay.internalUrl, token, path)
  return {
    ...relay,
    token,
    get,
    all: async (id: string, language = 'en') => await (await get(`/v1/status/${id}/all?language=${language}`)).text(),
  }
}

type TestRelay = Awaited<ReturnType<typeof asAnApp>>

const at = (minute: number, trackingId = '1001') =>
  pushBody({ eventTime: `2026-03-01T10:${String(minute).padStart(2, '0')}:00.000Z`, trackingIds: [own(trackingId)] })

interface FeedPage {
  readonly events: readonly {
    readonly sequence: number
    readonly kind: string
    readonly parcel: { readonly id: string; readonly history: readonly number[] }
    readonly joined: { readonly id: string }
    readonly entries: readonly { readonly id: number }[]
  }[]
  readonly next: number
}

const pageOf = async (answer: Response): Promise<FeedPage> => JSON.parse(await answer.text())

interface StreamedEvent {
  readonly id: number
  readonly data: string
}

/** Reads server-sent events. Skips comments. */
async function openStream({ internalUrl, token }: TestRelay, path: string, lastEventId?: number) {
  const leaving = new AbortController()
  const response = await fetchDocumented(`${internalUrl}${path}`, {
    signal: leaving.signal,
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'text/event-stream',
      ...(lastEventId === undefined ? {} : { 'last-event-id': String(lastEventId) }),
    },
  })
  const events: StreamedEvent[] = []
  const read = async () => {
    let text = ''
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        const [, id, data] = /^id: (\d+)\ndata: (.*)$/.exec(block) ?? []
        if (id !== undefined && data !== undefined) events.push({ id: Number(id), data })
      }
    }
  }
  const ended = read().catch(() => undefined)
  onTestFinished(() => leaving.abort())
  return { response, events, ended, leave: () => leaving.abort() }
}

test('3.4: a consumer rebuilds every answer to the byte, from any position, in every language', async () => {
  const sandbox = await startSandbox({
    speed: 0,
    parcels: PARCELS,
    seed: 11,
    hard: 0.5,
    sharedKey: SHARED_KEY,
    ...CARRIER_LOGIN,
    faults: { loss: 0.2 },
  })
  onTestFinished(() => sandbox.stop())
  const relay = await startRelay(sandbox.url, { serve: {} })
  sandbox.setWebhookUrls([`${relay.publicUrl}/webhooks/status`])
  const admin = await logIn(relay.internalUrl, ADMIN)
  const along = createFeedConsumer()
  const numbers = sandbox.world.parcels().map(({ trackingNumber }) => trackingNumber)
  // Watch these numbers before their parcels are known. A push then makes a second parcel, until a poll joins the two.
  for (const number of numbers.slice(0, 10)) {
    await fetchDocumented(`${relay.internalUrl}/relay/parcels/${number}/watch`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${admin}` },
    })
  }
  for (let step = 0; step < 6; step++) {
    await sandbox.advance(10 * 3_600_000)
    await Promise.all(numbers.slice(step * SOME, step * SOME + SOME).map((number) => relay.all(number)))
    await replayFeed(along, relay.internalUrl, relay.token, 7)
  }
  await sandbox.finish()
  const everyAnswer = async () => {
    const answers = numbers.flatMap((number) =>
      ['en', 'sv'].map(async (language) => [`${number} ${language}`, await relay.all(number, language)]),
    )
    return Object.fromEntries(await Promise.all(answers))
  }
  await everyAnswer()
  const late = createFeedConsumer()
  await vi.waitFor(
    async () => {
      await replayFeed(late, relay.internalUrl, relay.token)
      await replayFeed(along, relay.internalUrl, relay.token, 7)
      const served = await everyAnswer()
      for (const consumer of [late, along]) {
        const rebuilt = numbers.flatMap((number) =>
          ['en', 'sv'].map((language) => [`${number} ${language}`, consumer.all(number, [language, 'en', 'sv'])]),
        )
        expect(Object.fromEntries(rebuilt)).toEqual(served)
      }
    },
    { interval: 200 },
  )
  expect(late.kinds.get('join')).toBeGreaterThan(5)
  expect(late.kinds.get('entry')).toBeGreaterThan(5 * PARCELS)
})

test('3.4: a reader that resumes after its last sequence gets a scan that was reported late', async () => {
  const relay = await share()
  const consumer = createFeedConsumer()
  await push(relay.publicUrl, at(30))
  await push(relay.publicUrl, at(40))
  await replayFeed(consumer, relay.internalUrl, relay.token)
  const before = consumer.next()
  await push(relay.publicUrl, at(5))
  await replayFeed(consumer, relay.internalUrl, relay.token)
  expect(consumer.next()).toBeGreaterThan(before)
  expect(consumer.all(own('1001'), ['en'])).toBe(await relay.all(own('1001')))
  expect(consumer.all(own('1001'), ['en'])?.match(/10:\d\d/g)).toEqual(['10:40', '10:30', '10:05'])
})

test('the event of a join names the parcel that survives and the parcel that ends', async () => {
  const relay = await share()
  await push(relay.publicUrl, at(1, '1001'))
  await push(relay.publicUrl, at(2, '2002'))
  await push(relay.publicUrl, pushBody({ eventTime: '2026-03-01T10:03:00.000Z', trackingIds: ['2002', '1001'].map(own) }))
  const { events } = await pageOf(await relay.get(`/relay/events?after=${relay.end}`))
  expect(events.map(({ kind }) => kind)).toEqual(['entry', 'entry', 'join', 'entry'])
  expect(new Set(events.map(({ parcel }) => parcel.id)).size).toBe(1)
  const [, , joined] = events
  expect(joined).toMatchObject({ entry: null, parcel: { identifiers: ['1001', '2002'].map(own) }, joined: { identifiers: [own('2002')] } })
  expect(joined?.joined.id).not.toBe(joined?.parcel.id)
  expect(joined?.entries.map(({ id }) => id)).toEqual(joined?.parcel.history)
})

test('a waiting request is answered at the next push, or with no events when its time is over', async () => {
  const relay = await share()
  expect(await (await relay.get(`/relay/events?after=${relay.end}&wait=50ms`)).json()).toMatchObject({ events: [], next: relay.end })
  const waiting = relay.get(`/relay/events?after=${relay.end}&wait=30s`)
  const first = await Promise.race([waiting.then(() => 'answered'), relay.get('/healthz').then(() => 'waiting')])
  expect(first).toBe('waiting')
  // The request would wait longer than this test may take, so only the push can end it.
  await push(relay.publicUrl, at(1))
  const { events, next } = await pageOf(await waiting)
  expect(events).toMatchObject([{ sequence: next, kind: 'entry', entry: { id: next, status: 'TerminalArrived' } }])
})

test('a stream sends past and future events, and a returning reader resumes where it was', async () => {
  const relay = await share()
  await push(relay.publicUrl, at(1))
  const first = await openStream(relay, `/relay/events?after=${relay.end}`)
  expect(first.response.headers.get('content-type')).toBe('text/event-stream')
  expect(first.response.headers.get('content-encoding')).toBeNull()
  await vi.waitFor(() => expect(first.events).toHaveLength(1))
  await push(relay.publicUrl, at(2))
  await vi.waitFor(() => expect(first.events).toHaveLength(2))
  first.leave()
  for (const minute of [3, 4]) await push(relay.publicUrl, at(minute))
  const second = await openStream(relay, '/relay/events?after=0', first.events[1]?.id)
  await push(relay.publicUrl, at(5))
  await vi.waitFor(() => expect(second.events).toHaveLength(3))

  const consumer = createFeedConsumer()
  for (const { data } of [...first.events, ...second.events]) consumer.takeEvent(data)
  expect(consumer.all(own('1001'), ['en'])).toBe(await relay.all(own('1001')))
  const sequences = [...first.events, ...second.events].map(({ id }) => id)
  expect(sequences).toEqual([...new Set(sequences)].sort((a, b) => a - b))
})

test('a relay that stops ends its streams and answers waiting requests', async () => {
  const relay = await startRelay()
  const stream = await openStream(relay, '/relay/events')
  const waiting = Array.from({ length: 99 }, () => relay.get('/relay/events?wait=50s'))
  await relay.get('/relay/events')
  // The stream and the requests would last longer than this test may take, so only the stop can end them.
  await relay.stop()
  const answers = await Promise.all(waiting)
  expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  expect(await answers[0]?.json()).toMatchObject({ events: [], next: 0 })
  await stream.ended
})

test('streams in all slots do not block ordinary requests, and give way to other apps’ streams', async () => {
  const relay = await startRelay(NO_CARRIER, { limits: { feedFollowers: 8 } })
  const admin = { ...relay, token: await logIn(relay.internalUrl, ADMIN) }
  await push(relay.publicUrl, at(1))
  const streams: Awaited<ReturnType<typeof openStream>>[] = []
  for (let nth = 0; nth < 8; nth++) streams.push(await openStream(relay, '/relay/events'))
  expect(streams.map(({ response }) => response.status)).toEqual(Array(8).fill(200))

  const full = await relay.get('/relay/events?wait=1s')
  expect([full.status, full.headers.get('retry-after')]).toEqual([503, '5'])
  const page = await relay.get('/relay/events')
  expect([page.status, (await pageOf(page)).events.length]).toEqual([200, 1])

  const others = [await openStream(admin, '/relay/events'), await openStream(admin, '/relay/events')]
  expect(others.map(({ response }) => response.status)).toEqual([200, 200])
  await Promise.all(streams.slice(0, 2).map(({ ended }) => ended))
  // Each app is sure to get a quarter of the slots. The earliest requests get the rest.
  expect((await openStream(admin, '/relay/events')).response.status).toBe(503)
  await push(relay.publicUrl, at(2))
  for (const { events } of [...streams.slice(2), ...others]) await vi.waitFor(() => expect(events).toHaveLength(2))
})

test('a bad parameter is a 400 that names it', async () => {
  const relay = await share()
  const named = async (query: string) => {
    const answer = await relay.get(`/relay/events?${query}`)
    const { type, errors } = JSON.parse(await answer.text())
    return [answer.status, answer.headers.get('content-type'), type, errors[0].parameter]
  }
  const bad = {
    after: ['after=-1', 'after=1e3', 'after=', 'after=1&after=2'],
    limit: ['limit=0', 'limit=501', 'limit=', 'limit=ten'],
    wait: ['wait=30', 'wait=51s', 'wait='],
    since: ['since=3'],
  }
  for (const [parameter, queries] of Object.entries(bad))
    for (const query of queries)
      expect([query, ...(await named(query))]).toEqual([
        query,
        400,
        'application/problem+json',
        'urn:parcel-relay:error:bad_request',
        parameter,
      ])
  expect((await relay.get('/relay/events?after=0&limit=500&wait=0s')).status).toBe(200)
})

test('the feed refuses a request without a token', async () => {
  const relay = await share()
  expect((await fetchDocumented(`${relay.internalUrl}/relay/events`)).status).toBe(401)
})

test('a request for removed events is answered with the oldest sequence that is left', async () => {
  const relay = await startRelay()
  for (const minute of [1, 2, 3]) await push(relay.publicUrl, at(minute))
  const sequences = (await pageOf(await relay.get('/relay/events'))).events.map(({ sequence }) => sequence)
  const prunedTo = sequences[1] ?? 0
  await pruneStoredFeed(relay.databasePath, prunedTo)

  for (const path of ['/relay/events', `/relay/events?after=${prunedTo - 1}`]) {
    const answer = await relay.get(path)
    expect(answer.status).toBe(410)
    expect(await answer.json()).toMatchObject({ type: 'urn:parcel-relay:error:feed_gone', oldestSequence: prunedTo + 1 })
  }
  const stream = await openStream(relay, `/relay/events`, prunedTo - 1)
  expect(stream.response.status).toBe(410)
  const kept = await pageOf(await relay.get(`/relay/events?after=${prunedTo}`))
  expect(kept.events.map(({ sequence }) => sequence)).toEqual(sequences.slice(2))
})

test('a reader beyond the end of the feed, as after a restore, is told where the feed ends', async () => {
  const relay = await share()
  await push(relay.publicUrl, at(1))
  const { next } = await pageOf(await relay.get(`/relay/events?after=${relay.end}`))
  expect((await relay.get(`/relay/events?after=${next}`)).status).toBe(200)
  for (const path of [
    `/relay/events?after=${next + 1}`,
    `/relay/events?after=${next + 1}&wait=30s`,
    '/relay/events?after=999999999999999',
  ]) {
    const answer = await relay.get(path)
    expect([path, answer.status, await answer.json()]).toEqual([
      path,
      410,
      expect.objectContaining({ type: 'urn:parcel-relay:error:feed_rewound', lastSequence: next }),
    ])
  }
  expect((await openStream(relay, '/relay/events', next + 1)).response.status).toBe(410)
})

test('R3: a stream and a long poll of an app end when a reload removes the app or its scope', async () => {
  const relay = await relayOfTest({ serve: { fetchUnknown: false } })
  const [token, admin] = [await logIn(relay.internalUrl), await logIn(relay.internalUrl, ADMIN)]
  const follow = async (by: string) => {
    const headers = { authorization: `Bearer ${by}`, accept: 'text/event-stream' }
    const stream = await fetchDocumented(`${relay.internalUrl}/relay/events`, { headers })
    const polled = fetchDocumented(`${relay.internalUrl}/relay/events?wait=50s`, { headers: { authorization: `Bearer ${by}` } })
    return { text: stream.text(), status: polled.then(({ status }) => status) }
  }
  const [shop, operator] = [await follow(token), await follow(admin)]
  await vi.waitFor(async () => expect(await ask(relay.internalUrl, token, '/relay/events').then(({ status }) => status)).toBe(200))
  const config = loadConfig(writeConfig(relay.folder, NO_CARRIER))
  await relay.reload({ ...config, apps: config.apps.filter(({ username }) => username === ADMIN.username) })
  expect(await shop.status).toBe(401)
  await shop.text
  expect((await push(relay.publicUrl, at(1))).status).toBe(200)
  expect(await shop.text).not.toContain('data:')
  expect(await operator.status).toBe(200)
  const scopes = ['admin' as const]
  const last = await follow(admin)
  await relay.reload({ ...config, apps: config.apps.map((app) => (app.username === ADMIN.username ? { ...app, scopes } : app)) })
  expect(await operator.text).toContain('data:')
  await last.text
})
