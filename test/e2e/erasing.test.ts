import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { problemOf, startWorld } from '../faults/world.ts'
import { answerBody, pushBody } from '../support/history/builders.ts'
import { fetchDocumented } from '../support/portal/api-document.ts'
import { type createVisitor, loggedInAt } from '../support/portal/portal-visitor.ts'
import { ADMIN, ask, logIn } from '../support/relay/relay.ts'
import { filesThatHold, tablesThatHold } from '../support/store/all-rows.ts'

let world: Awaited<ReturnType<typeof startWorld>>
let visitor: ReturnType<typeof createVisitor>
let token: string
beforeAll(async () => {
  world = await startWorld()
  token = await logIn(world.internalUrl, ADMIN)
  visitor = await loggedInAt(world.internalUrl)
})
afterAll(() => world.stop())

async function call(method: string, path: string, body?: string): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/x-ndjson' }) }
  return await fetchDocumented(`${world.internalUrl}/relay/parcels${path}`, { method, headers, ...(body === undefined ? {} : { body }) })
}

test('an erased parcel is in no table, file or answer, and the carrier is not asked about it', async () => {
  world.carrier.says.set('ER100000001SE', () => answerBody({ trackingIds: ['84000001'], text: 'PLANTEDANSWER' }))
  await world.push(pushBody({ trackingIds: ['84000001'], texts: { en: 'PLANTEDPUSH' } }))
  await world.all('ER100000001SE')
  await world.all('84000001')
  const calls = world.carrier.callsAbout('ER100000001SE')
  const answer = await call('DELETE', '/84000001')
  expect(answer.status).toBe(200)
  expect(await answer.json()).toMatchObject({ removed: { parcels: 1, identifiers: 2, pushes: 1, answers: 1 } })
  await vi.waitFor(async () => expect(await (await call('DELETE', '/84000001')).json()).toMatchObject({ storage: 'clean' }))
  const words = ['ER100000001SE', '84000001', 'PLANTED']
  expect(await tablesThatHold(world.databasePath, words)).toEqual([])
  expect(filesThatHold(world.databasePath, words)).toEqual([])
  for (const identifier of ['ER100000001SE', '84000001'])
    expect((await ask(world.internalUrl, world.token, `/v1/status/${identifier}/all`)).status).toBe(404)
  expect(world.carrier.callsAbout('ER100000001SE')).toBe(calls)
  expect((await call('GET', '/84000001')).status).toBe(404)
})

test('a push about an erased parcel is answered 200, counted, and not kept', async () => {
  await world.push(pushBody({ trackingIds: ['84000002'] }))
  expect((await call('DELETE', '/84000002')).status).toBe(200)
  const before = await world.metric('relay_merged_total{result="erased"}')
  expect((await world.push(pushBody({ trackingIds: ['84000002'], status: 'Delivered' }))).status).toBe(200)
  await expect.poll(() => world.metric('relay_merged_total{result="erased"}'), { timeout: 60_000 }).toBe(before + 1)
  expect(await tablesThatHold(world.databasePath, ['84000002'])).toEqual([])
  expect(await world.metric('relay_parcels_erased_total')).toBeGreaterThan(0)
})

test('watching an erased identifier is a 409, and a list skips it and reports its line', async () => {
  await world.push(pushBody({ trackingIds: ['84000003'] }))
  await call('DELETE', '/84000003')
  const refused = await call('PUT', '/84000003/watch')
  expect(refused.status).toBe(409)
  expect(await problemOf(refused)).toBe('erased')
  expect(await problemOf(await call('POST', '/watch?atomic=true', '"84000004"\n"84000003"\n'))).toBe('erased')
  expect(await (await call('POST', '/watch', '"84000004"\n"84000003"\n')).json()).toMatchObject({
    watched: 1,
    failed: 1,
    erased: 1,
    errors: [{ line: 2, reason: 'belongs to an erased parcel' }],
  })
})

test('a dry run erases nothing, an unknown identifier is a 404, and a list reports its lines', async () => {
  await world.push(pushBody({ trackingIds: ['84000005'] }))
  expect(await (await call('DELETE', '/84000005?dryRun=true')).json()).toMatchObject({ dryRun: true, removed: { parcels: 1 } })
  expect((await call('GET', '/84000005')).status).toBe(200)
  expect((await call('DELETE', '/NEVER0001')).status).toBe(404)
  expect((await call('DELETE', '/x')).status).toBe(400)
  const report = await (await call('POST', '/forget', '"84000005"\n"NEVER0001"\nno JSON\n')).json()
  expect(report).toMatchObject({ lines: 3, erased: 1, unknown: 1, failed: 1, errors: [{ line: 2 }, { line: 3 }] })
})

test('readers of the feed learn the id of an erased parcel, and get none of its events', async () => {
  await world.push(pushBody({ trackingIds: ['84000006'], texts: { en: 'PLANTEDFEED' } }))
  const feed = async () => await (await ask(world.internalUrl, world.token, '/relay/events?after=0&limit=500')).text()
  expect(await feed()).toContain('PLANTEDFEED')
  await call('DELETE', '/84000006')
  const after = await feed()
  expect(after).not.toContain('PLANTEDFEED')
  expect(after).toMatch(/"kind":"erased","parcel":\{"id":"\d+"\}\}/)
})

test('the tombstones lie sealed beside the store, and a reseal of the secrets can read them', async () => {
  await world.push(pushBody({ trackingIds: ['84000007'] }))
  await call('DELETE', '/84000007')
  const kept = readFileSync(`${world.databasePath}.tombstones`, 'utf8')
  expect(kept).not.toContain('84000007')
  expect(kept.split('\n')[0]).toMatch(/^\{"key":"ey/)
  const resealed = await fetch(`${world.internalUrl}/relay/secrets/reseal`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
  })
  expect(await resealed.json()).toMatchObject({ upToDate: 1, unreadable: [] })
})

test('the portal erases a parcel only if its identifier is also typed in', async () => {
  await world.push(pushBody({ trackingIds: ['84000008'] }))
  expect((await visitor.get('/parcels/84000008')).text).toContain('Erase 84000008 for good')
  const unsure = await visitor.post('/parcels/84000008/erase', { confirm: '84' })
  expect(unsure.status).toBe(400)
  expect(unsure.text).toContain('to confirm.</span>')
  const erased = await visitor.post('/parcels/84000008/erase', { confirm: '84000008' })
  expect(erased.text).toContain('The parcel is erased')
  for (const text of ['84000008', 'Marks of its tombstones', 'by admin']) expect(erased.text).toContain(text)
  const page = await visitor.get('/parcels/84000008')
  expect(page.status).toBe(404)
  expect(page.text).toContain('The parcel that had it was erased at ')
  expect(await (await call('POST', '/84000008/refresh')).json()).toMatchObject({ detail: expect.stringContaining('was erased at 2') })
})
