import { expect, test } from 'vitest'
import type { paths } from '../../docs/openapi.d.ts'
import { pushBody } from '../support/history/builders.ts'
import { ADMIN, logIn, push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'

/** Maps each path whose GET answers with JSON to the type of the answer. */
type Answers = {
  [Path in keyof paths as paths[Path] extends { get: { responses: { 200: { content: { 'application/json': unknown } } } } }
    ? Path
    : never]: paths[Path] extends {
    get: { responses: { 200: { content: { 'application/json': infer Answer } } } }
  }
    ? Answer
    : never
}

/** Makes a client that knows the API only by its types. */
function createClient(url: string, token: string) {
  return async <Path extends keyof Answers>(path: Path, params: Readonly<Record<string, string>> = {}): Promise<Answers[Path]> => {
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
    const answer = await fetch(`${url}${filled}`, { headers: { authorization: `Bearer ${token}` } })
    expect(answer.status).toBe(200)
    // Other tests check that the answers fit the document, so the type is right.
    return (await answer.json()) as Answers[Path]
  }
}

test('a client with types from the API document reads a parcel, the list and the tallies', async () => {
  const relay = await relayOfTest()
  await push(relay.publicUrl, pushBody({ trackingIds: ['AB123456789SE'] }))
  const get = createClient(relay.internalUrl, await logIn(relay.internalUrl, ADMIN))
  const parcel = await get('/relay/parcels/{identifier}', { identifier: 'AB123456789SE' })
  expect([parcel.identifiers.map(({ value }) => value), parcel.entries]).toEqual([['AB123456789SE'], 1])
  const { parcels } = await get('/relay/parcels')
  expect(parcels.length).toBe(1)
  const { tallies } = await get('/relay/tallies')
  expect(tallies.length).toBeLessThanOrEqual(1)
})
