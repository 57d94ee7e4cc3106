import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { problemOf, startWorld } from '../faults/world.ts'
import { answerBody, pushBody } from '../support/history/builders.ts'
import { fetchDocumented } from '../support/portal/api-document.ts'
import { ADMIN, logIn } from '../support/relay/relay.ts'
import { onlyLong } from '../support/runner/long-form.ts'

const LINES = 10_000

const page = z.object({
  parcels: z.array(
    z.object({
      identifiers: z.array(z.string()),
      status: z.string().nullable(),
      cadence: z.object({ nextCheckAt: z.string().nullable(), stopped: z.string().nullable() }),
    }),
  ),
  next: z.string().nullable(),
})

async function open() {
  const relay = await startWorld()
  const token = await logIn(relay.internalUrl, ADMIN)
  const call = async (method: string, path: string, body?: string, type = 'application/x-ndjson'): Promise<Response> => {
    const headers = { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': type }) }
    return await fetchDocumented(`${relay.internalUrl}/relay/parcels${path}`, { method, headers, ...(body === undefined ? {} : { body }) })
  }
  const json = async (method: string, path: string, body?: string, type?: string): Promise<unknown> =>
    await (await call(method, path, body, type)).json()
  const listed = async (query: string, limit = 3): Promise<readonly string[]> => {
    const found: string[] = []
    let cursor = ''
    do {
      const { parcels, next } = page.parse(await json('GET', `?limit=${limit}&${query}${cursor}`))
      found.push(...parcels.flatMap(({ identifiers }) => identifiers))
      cursor = next === null ? '' : `&cursor=${next}`
    } while (cursor !== '')
    return found
  }
  return { ...relay, call, json, listed }
}

/** Starts a separate relay for a test that lists all watched parcels, or watches many. */
async function openOwn() {
  const own = await open()
  onTestFinished(() => own.stop())
  return own
}

/** One relay for all tests that look only at their own parcels. */
let shared: Awaited<ReturnType<typeof open>>
beforeAll(async () => {
  shared = await open()
})
afterAll(() => shared.stop())

test('an unwatched parcel keeps its history, and is watched again when an app asks for it', async () => {
  const { call, json, listed, ...world } = await openOwn()
  const number = 'WA100000001SE'
  world.carrier.says.set(number, () => answerBody({ trackingIds: ['81000001'] }))
  expect((await call('PUT', `/${number}/watch`)).status).toBe(201)
  const history = await world.all(number)
  // This second answer comes from the cache, and not from the store.
  await world.all(number)
  expect(await json('DELETE', `/${number}/watch`)).toEqual({ identifier: number, stopped: 'unwatched' })
  expect(await listed('stopped=unwatched')).toEqual([number, '81000001'])
  expect(await world.all(number)).toEqual(history)
  expect(await listed('stopped=unwatched')).toEqual([])
  expect(await json('GET', `/${number}`)).toMatchObject({ cadence: { stopped: null, nextCheckAt: expect.any(String) } })
})

test('a push revives an unwatched parcel, and unwatching an unknown parcel is a 404', async () => {
  const { call, listed, ...world } = await openOwn()
  expect((await world.push(pushBody({ trackingIds: ['81000002'] }))).status).toBe(200)
  expect((await call('DELETE', '/81000002/watch')).status).toBe(200)
  expect((await world.push(pushBody({ trackingIds: ['81000002'], eventTime: '2026-03-01T11:00:00Z' }))).status).toBe(200)
  expect(await listed('stopped=unwatched')).toEqual([])
  const unknown = await call('DELETE', '/81009999/watch')
  expect([unknown.status, await problemOf(unknown)]).toEqual([404, 'not_found'])
})

test('a parcel shows its identifiers, its checks, and when a push or a poll found each entry', async () => {
  const { json, ...world } = shared
  const number = 'WA100000003SE'
  const entry = { eventTimestamp: '2026-03-01T10:00:00.250Z' }
  world.carrier.says.set(number, () => answerBody({ trackingIds: ['81000003'], statuses: [entry] }))
  await world.push(pushBody({ trackingIds: ['81000003'] }))
  expect(await world.refresh('81000003')).toBe(200)
  await world.all(number)
  const parcel = z
    .object({
      identifiers: z.array(z.object({ value: z.string(), kind: z.string(), carrierKnowsIt: z.boolean() })),
      cadence: z.object({ failures: z.number(), lastCheckAt: z.string(), nextCheckAt: z.string() }),
      history: z.array(
        z.object({
          status: z.string(),
          sequence: z.number(),
          learntAt: z.string(),
          learntBy: z.string(),
          confirmedAt: z.string(),
          confirmedBy: z.string(),
          provenance: z.array(
            z.object({
              door: z.string(),
              languages: z.array(z.string()),
              sequence: z.number(),
              learntAt: z.string(),
              askedAt: z.string().nullable(),
            }),
          ),
        }),
      ),
    })
    .parse(await json('GET', '/81000003'))
  expect(parcel.identifiers).toEqual([
    { value: number, kind: 'tracking number', carrierKnowsIt: true },
    { value: '81000003', kind: 'tracking id', carrierKnowsIt: false },
  ])
  const [told] = parcel.history
  expect(parcel.history).toHaveLength(1)
  expect(told?.provenance.map(({ door, languages }) => [door, languages])).toEqual([
    ['push', ['en', 'sv']],
    ['poll', ['en']],
  ])
  expect(told?.provenance[0]?.sequence).toBe(told?.sequence)
  expect([told?.learntBy, told?.confirmedBy]).toEqual(['push', 'poll'])
  expect(told?.provenance.map(({ learntAt }) => learntAt)).toEqual([told?.learntAt, told?.confirmedAt])
})

test('a later poll changes neither when an entry was first learnt nor the answers to apps', async () => {
  const { json, ...world } = shared
  const number = 'WA100000004SE'
  world.carrier.says.set(number, () => answerBody({ trackingIds: ['81000004'] }))
  const first = await world.all(number)
  const learnt = async () =>
    z
      .object({ history: z.array(z.object({ learntAt: z.string(), learntBy: z.string(), confirmedAt: z.string().nullable() })) })
      .parse(await json('GET', `/${number}`)).history
  const [before] = await learnt()
  expect(before).toMatchObject({ learntBy: 'poll', confirmedAt: null })
  expect(await world.refresh(number)).toBe(200)
  expect(await learnt()).toEqual([before])
  expect(await world.all(number)).toEqual(first)
  expect((await world.push(pushBody({ trackingIds: ['81000004'], eventTime: '2026-03-01T10:00:00.250Z' }))).status).toBe(200)
  expect(await learnt()).toEqual([{ ...before, confirmedAt: expect.any(String) }])
})

test('parcels are listed by the time of their next check, and those without one come last', async () => {
  const { call, listed, ...world } = await openOwn()
  expect((await world.push(pushBody({ trackingIds: ['81000003'] }))).status).toBe(200)
  for (const at of [1, 2, 3, 4, 5, 6, 7]) await call('PUT', `/LIST${at}/watch`)
  await call('DELETE', '/LIST4/watch')
  const all = await listed('')
  expect(all.filter((one) => one.startsWith('LIST'))).toEqual(['LIST1', 'LIST2', 'LIST3', 'LIST5', 'LIST6', 'LIST7', 'LIST4'])
  expect(all.at(-1)).toBe('LIST4')
  expect(new Set(all).size).toBe(all.length)
  expect(await listed('query=list', 2)).toEqual(['LIST1', 'LIST2', 'LIST3', 'LIST4', 'LIST5', 'LIST6', 'LIST7'])
  expect(await listed('query=LIST&stopped=unwatched', 2)).toEqual(['LIST4'])
  expect(await listed('status=TerminalArrived&query=8100', 2)).toEqual(['81000003'])
  expect(await listed('status=TerminalUpdated')).toEqual([])
})

test.each(['query=%25', 'query=a&query=b', 'stopped=lost', 'limit=0', 'limit=9999', 'cursor=x', 'cursor=next.1.-1'])(
  'listing parcels with %s is a 400',
  async (query) => {
    const { call } = shared
    expect((await call('GET', `?${query}`)).status).toBe(400)
  },
)

test('the parcels of an uploaded list are watched, and its bad lines are named by number', async () => {
  const { json, listed } = shared
  const ndjson = ['{"identifier":"BULK0001"}', '"bulk0002"', '', 'BULK0003', '{"identifier":"!"}', '{"identifier":" BULK0001 "}'].join(
    '\r\n',
  )
  expect(await json('POST', '/watch', ndjson)).toEqual({
    lines: 6,
    watched: 3,
    created: 2,
    failed: 2,
    erased: 0,
    errors: [
      { line: 4, reason: 'is not valid JSON' },
      { line: 5, reason: 'is not an identifier: it must be 4 to 40 letters and digits' },
    ],
  })
  expect(await listed('query=BULK0')).toEqual(['BULK0001', 'BULK0002'])
})

test.each([
  ['a column named "Tracking number"', 'Order;Tracking number;Note\nA1;CSV00001;"x;y"\nA2;"csv00002";\n', ['CSV00001', 'CSV00002']],
  ['one column and no header', '\ufeffCSV00011\nCSV00012', ['CSV00011', 'CSV00012']],
])('CSV with %s is accepted as a list', async (_name, csv, expected) => {
  const { json, listed } = shared
  expect(await json('POST', '/watch', csv, 'text/csv; charset=utf-8')).toMatchObject({ watched: 2, failed: 0 })
  expect(await listed(`query=${expected[0]?.slice(0, 7) ?? ''}`)).toEqual(expected)
})

test('CSV without a known header is a 400 that names the columns, and a column can be chosen', async () => {
  const { call, json, listed } = shared
  const csv = 'Order;Kolli-ID\n1001;HDR 000 01\n1002;HDR00002'
  const refused = await call('POST', '/watch', csv, 'text/csv')
  expect([refused.status, await refused.json()]).toEqual([
    400,
    expect.objectContaining({ watched: 0, detail: expect.stringContaining('"Order", "Kolli-ID"') }),
  ])
  expect(await listed('query=ORDER')).toEqual([])
  expect(await json('POST', '/watch?column=kolli-id', csv, 'text/csv')).toMatchObject({ watched: 2, failed: 0 })
  expect(await listed('query=HDR')).toEqual(['HDR00001', 'HDR00002'])
})

test('with atomic=true, one bad line prevents all watches, and a list of good lines is watched', async () => {
  const { call, json, listed } = shared
  const bad = await call('POST', '/watch?atomic=true', 'ATOM0001\n??\n', 'text/csv')
  expect([bad.status, await bad.json()]).toEqual([
    400,
    expect.objectContaining({ watched: 0, failed: 1, errors: [{ line: 2, reason: expect.any(String) }] }),
  ])
  expect(await listed('query=ATOM')).toEqual([])
  expect(await json('POST', '/watch?atomic=true', 'ATOM0001\nATOM0002', 'text/csv')).toMatchObject({ watched: 2 })
})

test('the first thousand of many bad lines are listed, and all are counted', async () => {
  const { json } = shared
  const report = z.object({ failed: z.number(), errors: z.array(z.unknown()) })
  const { failed, errors } = report.parse(await json('POST', '/watch', '-\n'.repeat(1500), 'text/csv'))
  expect([failed, errors.length]).toEqual([1500, 1000])
})

test('an uploaded list of an unknown type, without a login or without the right is refused', async () => {
  const { call, ...world } = shared
  expect((await call('POST', '/watch', 'ABCD', 'text/plain')).status).toBe(400)
  const url = `${world.internalUrl}/relay/parcels/watch`
  expect((await fetch(url, { method: 'POST', body: 'ABCD' })).status).toBe(401)
  const headers = { authorization: `Bearer ${world.token}`, 'content-type': 'text/csv' }
  expect((await fetch(url, { method: 'POST', body: 'ABCD', headers })).status).toBe(403)
})

onlyLong(test)('pushes are accepted while a list is being watched, and over 100,000 lines are too many', async () => {
  const { call, json, ...world } = await openOwn()
  const lines = Array.from({ length: LINES }, (_, at) => `MANY${String(at).padStart(8, '0')}`)
  let done = false
  const bulk = json('POST', '/watch', lines.join('\n'), 'text/csv').finally(() => {
    done = true
  })
  let meanwhile = 0
  for (let at = 0; !done; at++) {
    const body = pushBody({ trackingIds: [String(82_000_000 + at)] })
    expect((await world.push(body)).status).toBe(200)
    meanwhile += 1
  }
  expect(await bulk).toMatchObject({ lines: LINES, watched: LINES, created: LINES, failed: 0 })
  // A push waits for at most one transaction of the list, never for the whole list.
  expect(meanwhile).toBeGreaterThan(1)
  const more = await call('POST', '/watch?atomic=true', 'TOOMANY1\n'.repeat(100_001), 'text/csv')
  expect([more.status, await more.json()]).toEqual([413, expect.objectContaining({ watched: 0 })])
})

test('an unknown status is a 400 that names the existing statuses', async () => {
  const { call, json, listed, ...world } = shared
  const bogus = await call('GET', '?status=Teleported')
  expect([bogus.status, await problemOf(bogus)]).toEqual([400, 'bad_request'])
  expect(await json('GET', '?status=Createt')).toMatchObject({
    errors: [{ parameter: 'status', detail: expect.stringMatching(/Created, Ingested.*; did you mean Created\?$/) }],
  })
  expect((await world.push(pushBody({ trackingIds: ['84000001'], status: 'Teleported' }))).status).toBe(200)
  expect(await listed('status=Teleported')).toEqual(['84000001'])
})

test('all mistakes in the parameters of a list of parcels are reported together', async () => {
  const { json } = shared
  const { errors } = z
    .object({ errors: z.array(z.object({ parameter: z.string(), detail: z.string() })) })
    .parse(await json('GET', '?query=a_b&cursor=xx&limit=0&stopped=yes'))
  expect(errors.map(({ detail }) => detail)).toEqual([
    'limit must be a whole number from 1 to 500.',
    'cursor must be the "next" of the previous page.',
    'query must be the first letters and digits of an identifier.',
    'stopped must be one of delivered, stale, unknown, unwatched.',
  ])
})

test('a 201 has the address of the new resource in Location', async () => {
  const { call } = shared
  const made = await call('PUT', '/wa200000001se/watch')
  expect([made.status, made.headers.get('location')]).toEqual([201, '/relay/parcels/WA200000001SE'])
  const again = await call('PUT', '/wa200000001se/watch')
  expect([again.status, again.headers.get('location')]).toEqual([200, null])
})
