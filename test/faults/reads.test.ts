import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { raw } from '../core/http/harness.ts'
import { answerBody, pushBody } from '../support/history/builders.ts'
import { withoutTable } from '../support/store/stored-rows.ts'
import { problemOf, startWorld, type World } from './world.ts'

const KNOWN = '40000001'
const PATH = `/v1/status/${KNOWN}/all?language=en`

let world: World
beforeAll(async () => {
  world = await startWorld()
  expect((await world.push(pushBody({ trackingIds: [KNOWN], texts: { en: 'Arrived' } }))).status).toBe(200)
})
afterEach(() => world.carrier.setDown(false))
afterAll(() => world.stop())

/** Sends a GET with exactly these `Authorization` headers, which `fetch` would join or refuse. */
async function askWith(authorizations: readonly string[], path = PATH) {
  const headers = authorizations.map((value) => `Authorization: ${value}\r\n`).join('')
  return await raw(world.internalPort, `GET ${path} HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n${headers}\r\n`)
}

const forms: readonly (readonly [string, (token: string) => readonly string[]])[] = [
  ['none', () => []],
  ['an empty one', () => ['']],
  ['only blanks', () => ['   ']],
  ['a scheme without a token', () => ['Bearer']],
  ['a scheme and a blank', () => ['Bearer ']],
  ['a token without a scheme', (token) => [token]],
  ['another scheme', (token) => [`Basic ${token}`]],
  ['two blanks', (token) => [`Bearer  ${token}`]],
  ['a tab instead of the blank', (token) => [`Bearer\t${token}`]],
  ['something after the token', (token) => [`Bearer ${token} x`]],
  ['two tokens in one', (token) => [`Bearer ${token}, Bearer ${token}`]],
  ['a wrong token', () => ['Bearer nobody-issued-this']],
  ['a token cut short', (token) => [`Bearer ${token.slice(0, -1)}`]],
  ['a token with another payload', (token) => [`Bearer ${token.replace(/\.(.)/, (_all, letter) => `.${letter === 'e' ? 'f' : 'e'}`)}`]],
  ['a token that says it needs no signature', (token) => [`Bearer eyJhbGciOiJub25lIn0.${token.split('.')[1]}.`]],
  ['10 KB of token', () => [`Bearer ${'x'.repeat(10_000)}`]],
  ['two headers, both good', (token) => [`Bearer ${token}`, `Bearer ${token}`]],
  ['two headers, the first good', (token) => [`Bearer ${token}`, 'Bearer x']],
  ['two headers, the second good', (token) => ['Bearer x', `Bearer ${token}`]],
  ['two headers, one empty', (token) => [`Bearer ${token}`, '']],
]

test.each(forms)('R1: with this Authorization, the answer is a 401 that tells nothing about the parcel: %s', async (_name, write) => {
  const answer = await askWith(write(world.token))
  expect(answer.status).toBe(401)
  expect(answer.text).toMatch(/\r\nWWW-Authenticate: Bearer\r\n/i)
  expect(answer.text).toMatch(/\r\nCache-Control: no-store\r\n/i)
  expect(answer.text).toContain('urn:parcel-relay:error:unauthorized')
  expect(answer.text).not.toContain('statuses')
})

test('R1: an Authorization of 16 KB gets a 431 or a 401', async () => {
  expect([401, 431]).toContain((await askWith([`Bearer ${'x'.repeat(16_384)}`])).status)
})

test.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('R1: the scheme may be written %s', async (scheme) => {
  expect((await askWith([`${scheme} ${world.token}`])).status).toBe(200)
})

test('R1, R5: without a token an unknown parcel is a 401 too, without a call to the carrier', async () => {
  const asked = world.carrier.asked.status
  expect((await askWith([], '/v1/status/40009999/all')).status).toBe(401)
  expect(world.carrier.asked.status).toBe(asked)
})

test('R5: a parcel that neither relay nor carrier knows is a 404, for `latest` and `all`', async () => {
  for (const kind of ['latest', 'all']) {
    const answer = await world.get(`/v1/status/40000404/${kind}`)
    expect([answer.status, answer.headers.get('content-type'), await problemOf(answer)]).toEqual([
      404,
      'application/problem+json',
      'not_found',
    ])
  }
})

test('R5: while the carrier is down, a known parcel is a 200 with the age of the answer', async () => {
  world.carrier.setDown(true)
  for (let time = 0; time < 3; time += 1) {
    const answer = await world.get(PATH)
    expect([answer.status, answer.headers.get('cache-status')]).toEqual([200, 'parcel-relay; hit'])
    expect(answer.headers.get('age')).toMatch(/^\d+$/)
    expect(await answer.text()).toContain('"detailedStatusDescription":"Arrived"')
  }
})

test('R5: while the carrier is down, a missing language gets a stale answer in another language', async () => {
  const id = '40000002'
  expect((await world.push(pushBody({ trackingIds: [id], texts: { en: 'Arrived' } }))).status).toBe(200)
  world.carrier.setDown(true)
  const answer = await world.get(`/v1/status/${id}/all?language=sv`)
  expect([answer.status, answer.headers.get('cache-status'), answer.headers.get('content-language')]).toEqual([
    200,
    'parcel-relay; hit; detail=stale',
    'en',
  ])
  expect(answer.headers.get('age')).toMatch(/^\d+$/)
  expect(await answer.text()).toContain('"detailedStatusDescription":"Arrived"')
})

test('R5: while the carrier is down an unknown parcel is a 503, never a 404', async () => {
  const [number, id] = ['PS40000003SE', '40000003']
  world.carrier.says.set(number, () => answerBody({ trackingIds: [id] }))
  world.carrier.setDown(true)
  for (const kind of ['latest', 'all']) {
    const answer = await world.get(`/v1/status/${number}/${kind}`)
    expect([answer.status, await problemOf(answer)]).toEqual([503, 'upstream_unavailable'])
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  }
  world.carrier.setDown(false)
  expect((await world.all(number)).statuses).toHaveLength(1)
})

test('R5: while the store cannot be read every answer is a 503 with Retry-After', async () => {
  const [fresh, number] = ['40000005', 'PS40000006SE']
  expect((await world.push(pushBody({ trackingIds: [fresh] }))).status).toBe(200)
  world.carrier.says.set(number, () => answerBody({ trackingIds: ['40000006'] }))
  await withoutTable(world.databasePath, 'identifier', async () => {
    for (const identifier of [fresh, number]) {
      const answer = await world.get(`/v1/status/${identifier}/all`)
      expect([identifier, answer.status, await problemOf(answer)]).toEqual([identifier, 503, 'storage_unavailable'])
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    }
  })
  for (const identifier of [fresh, number]) expect((await world.all(identifier)).statuses).toHaveLength(1)
})

test('R8: an entry that is not for consumers has no text for them in any language', async () => {
  const [number, id, secret] = ['PS40000007SE', '40000007', 'for operators only']
  const texts = { en: secret, sv: secret, fi: secret }
  expect((await world.push(pushBody({ trackingIds: [id], displayToConsumer: false, texts: {}, consumer: texts }))).status).toBe(200)
  const hidden = { displayToConsumer: false, consumerDescription: secret, detailedStatusDescription: 'Sorted' }
  world.carrier.says.set(number, () =>
    answerBody({ trackingIds: [id], statuses: [{ ...hidden, eventTimestamp: '2026-03-02T10:00:00Z' }, hidden] }),
  )
  const check = async (identifier: string, entries: number) => {
    for (const kind of ['latest', 'all'])
      for (const language of ['en', 'sv', 'fi', 'sv-SE']) {
        const text = await (await world.get(`/v1/status/${identifier}/${kind}?language=${language}`)).text()
        expect(text).toContain('"consumerDescription":null,"displayToConsumer":false')
        expect(text).not.toContain(secret)
      }
    expect((await world.all(identifier)).statuses.map(({ consumerDescription }) => consumerDescription)).toEqual(
      Array.from({ length: entries }, () => null),
    )
  }
  await check(id, 1)
  await check(number, 2)
})

test('R8: a later poll that hides an entry removes its consumer text from the answers', async () => {
  const [number, id] = ['PS40000008SE', '40000008']
  expect((await world.push(pushBody({ trackingIds: [id], texts: { en: 'Come and fetch it' } }))).status).toBe(200)
  expect((await world.all(id)).statuses[0]?.consumerDescription).toBe('Come and fetch it')
  const polled = { displayToConsumer: false, consumerDescription: null, detailedStatusDescription: 'Held' }
  world.carrier.says.set(number, () => answerBody({ trackingIds: [id], statuses: [polled] }))
  await world.all(number)
  expect((await world.all(id)).statuses).toMatchObject([{ displayToConsumer: false, consumerDescription: null }])
})
