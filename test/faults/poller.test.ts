import { afterAll, beforeAll, expect, test } from 'vitest'
import { answerBody, type PolledEntry, pushBody } from '../support/history/builders.ts'
import { eventually, problemOf, startWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld({ serve: { notFoundFor: '3s' }, upstream: { timeout: '10s' } })
})
afterAll(() => world.stop())

const entries: readonly PolledEntry[] = [
  { status: 'DeliveryStarted', detailedStatus: 'DeliveryStarted', eventTimestamp: '2026-03-02T08:00:00Z' },
  { status: 'TerminalArrived', detailedStatus: 'ArrivedT2', eventTimestamp: '2026-03-01T10:00:00Z' },
  { status: 'Ingested', detailedStatus: 'Ingested', eventTimestamp: '2026-02-28T10:00:00Z' },
]
const regressed = () => world.metric('relay_merged_total{result="upstream_regressed"}')

test('P6: the 404 of an unknown parcel is remembered for a limited time', async () => {
  const number = 'PS600000001SE'
  const ask = () => world.get(`/v1/status/${number}/all`)
  const first = await ask()
  expect([first.status, await problemOf(first)]).toEqual([404, 'not_found'])
  world.carrier.says.set(number, () => answerBody({ trackingIds: ['60000001'], statuses: entries }))
  expect([(await ask()).status, world.carrier.callsAbout(number)]).toEqual([404, 1])
  await eventually(async () => (await ask()).status === 200)
  expect(world.carrier.callsAbout(number)).toBe(2)
  expect((await world.all(number)).statuses).toHaveLength(3)
})

test('P6: a push ends a remembered 404 at once', async () => {
  const id = '60000002'
  expect((await world.get(`/v1/status/${id}/all`)).status).toBe(404)
  expect((await world.push(pushBody({ trackingIds: [id] }))).status).toBe(200)
  expect((await world.all(id)).statuses).toHaveLength(1)
})

test.each([
  ['fewer entries', answerBody({ trackingIds: ['70000001'], statuses: entries.slice(1, 2) }), '70000001'],
  ['no entries', answerBody({ trackingIds: ['70000002'], statuses: [] }), '70000002'],
])('P7: a later answer with %s removes nothing, and is counted', async (_name, shrunken, id) => {
  const number = `PS${id}SE`
  world.carrier.says.set(number, () => answerBody({ trackingIds: [id], statuses: entries }))
  const known = await world.all(number)
  expect(known.statuses).toHaveLength(3)
  const before = await regressed()
  world.carrier.says.set(number, () => shrunken)
  expect(await world.refresh(number)).toBe(200)
  expect(await world.all(number)).toEqual(known)
  // The anomaly counts once for each configured language that was asked for.
  expect(await regressed()).toBe(before + 2)
})

test('P7: an answer that lacks an entry from a push does not remove the entry', async () => {
  const [number, id] = ['PS70000003SE', '70000003']
  world.carrier.says.set(number, () => answerBody({ trackingIds: [id], statuses: entries.slice(1) }))
  await world.all(number)
  const before = await regressed()
  expect(await world.refresh(number)).toBe(200)
  expect(await regressed()).toBe(before)
  const pushed = { status: 'DeliverySucceeded', detailedStatus: 'DeliverySucceededMailbox', eventTime: '2026-03-03T10:00:00.250Z' }
  expect((await world.push(pushBody({ trackingIds: [id], ...pushed }))).status).toBe(200)
  expect(await world.refresh(number)).toBe(200)
  expect((await world.all(number)).statuses.map(({ status }) => status)).toEqual(['DeliverySucceeded', 'TerminalArrived', 'Ingested'])
  expect(await regressed()).toBe(before + 2)
})

test.each([
  ['a page', '<!doctype html><title>Sorry</title>'],
  ['JSON cut short', answerBody({ statuses: entries }).subarray(0, 200).toString()],
  ['another shape', '{"statuses":{}}'],
  ['a megabyte too much', `{"statuses":[],"trackingIds":[],"distributionType":"${'x'.repeat(1_100_000)}"}`],
])('P7, P3: an answer that is %s removes nothing', async (name, body) => {
  const id = `7100${name.length}`
  const number = `PS${id}SE`
  world.carrier.says.set(number, () => answerBody({ trackingIds: [id], statuses: entries }))
  const known = await world.all(number)
  world.carrier.says.set(number, () => Buffer.from(body))
  expect(await world.refresh(number)).not.toBe(500)
  expect(await world.all(number)).toEqual(known)
})

test('P9: a push in one language and polls in two make one entry with the texts of each', async () => {
  const [number, id] = ['PS90000001SE', '90000001']
  const push = pushBody({ trackingIds: [id], texts: { sv: 'Framme (push)', fi: 'Perillä' }, eventTime: '2026-03-01T10:00:00.000Z' })
  expect((await world.push(push)).status).toBe(200)
  const texts: Readonly<Record<string, string>> = { en: 'Arrived', sv: 'Framme' }
  const say = (language: string) => answerBody({ trackingIds: [id], text: texts[language] ?? '', language })
  world.carrier.says.set(number, say)
  await world.all(number, 'en')
  expect(await world.refresh(number)).toBe(200)
  const served = await Promise.all(['en', 'sv', 'fi'].map((language) => world.all(number, language)))
  expect(served.map(({ statuses }) => statuses.map(({ detailedStatusDescription }) => detailedStatusDescription))).toEqual([
    ['Arrived'],
    ['Framme'],
    ['Perillä'],
  ])
  expect((await world.get(`/v1/status/${id}/all?language=sv-SE`)).headers.get('content-language')).toBe('sv')
})

test('P10: a thousand requests for one unknown parcel cause one call and get a thousand answers', async () => {
  const number = 'PS100000001SE'
  world.carrier.says.set(number, () => answerBody({ trackingIds: ['10000001'], statuses: entries }))
  const gate = Promise.withResolvers<void>()
  world.carrier.wait(gate.promise)
  const path = (at: number) => `/v1/status/${number}/${at % 2 === 0 ? 'all' : 'latest'}?language=en`
  const asked = Array.from({ length: 1000 }, (_, at) => (at % 3 === 0 ? world.getAsAdmin(path(at)) : world.get(path(at))))
  await eventually(async () => world.carrier.callsAbout(number) > 0)
  gate.resolve()
  const answers = await Promise.all(asked)
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  const bodies = new Set(await Promise.all(answers.map((answer) => answer.text())))
  expect([answers.length, bodies.size, world.carrier.callsAbout(number)]).toEqual([1000, 2, 1])
})
