import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { cookiesIn, follow } from '../support/portal/live-stream.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { push, type Sections, SHOP } from '../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay/relay-of-file.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'

const SECTIONS = { delivery: { allowNetworks: ['127.0.0.0/8'] } }
const ofFile = relayOfFile(NO_CARRIER, SECTIONS)
const own = idsOfTest()

const start = (sections: Sections = {}) => relayOfTest({ ...SECTIONS, ...sections })

test('a page’s stream says only that the page has changed', async () => {
  const { internalUrl, publicUrl } = ofFile()
  const id = own('1001')
  await push(publicUrl, pushBody({ trackingIds: [id] }))
  const [shown, other] = [await follow(internalUrl, `/parcels/${id}`), await follow(internalUrl, `/parcels/${own('1002')}`)]
  expect(shown.answer.headers.get('content-type')).toBe('text/event-stream')
  await push(publicUrl, pushBody({ trackingIds: [id], status: 'DeliveryStarted' }))
  await expect.poll(() => shown.changes()).toBe(1)
  expect(shown.said.text).toBe('retry: 2000\n\nevent: changed\ndata:\n\n')
  expect(other.changes()).toBe(0)
})

test('a disabled webhook or a push in quarantine changes every page of every reader', async () => {
  const { internalUrl, publicUrl } = await start()
  const visitor = await loggedInAt(internalUrl)
  await visitor.post('/webhooks/new', { url: 'http://127.0.0.1:9/hook', name: 'till' })
  const pages = [await follow(internalUrl, '/'), await follow(internalUrl, '/settings'), await follow(internalUrl, '/parcels', SHOP)]
  await visitor.post('/webhooks/1/disable')
  await expect.poll(() => pages.map((page) => page.changes())).toEqual([1, 1, 1])
  await push(publicUrl, 'no JSON')
  await expect.poll(() => pages.map((page) => page.changes())).toEqual([2, 2, 2])
})

test('only a person who is logged in gets a stream', async () => {
  const { answer } = await follow(ofFile().internalUrl, '/', { headers: {} })
  expect([answer.status, answer.headers.get('set-cookie')]).toEqual([401, null])
})

test('a hundred pages get a stream, and the next one only after one of them is closed', async () => {
  const { internalUrl } = await start()
  const visitor = await loggedInAt(internalUrl)
  const cookie = cookiesIn(visitor.jar)
  const streams = await Promise.all(Array.from({ length: 100 }, () => follow(internalUrl, '/', { headers: { cookie } })))
  expect(streams.map(({ answer }) => answer.status)).toEqual(streams.map(() => 200))
  expect((await follow(internalUrl, '/', { headers: { cookie } })).answer.status).toBe(503)
  // Ordinary pages need no slot for a stream.
  expect((await visitor.get('/')).status).toBe(200)
  streams[0]?.leave()
  await expect.poll(async () => (await follow(internalUrl, '/', { headers: { cookie } })).answer.status).toBe(200)
})

test('a stream ends within a second of the reload that removes its app or the portal', async () => {
  for (const sections of [{ apps: [] }, { portal: { enabled: false } }]) {
    const { internalUrl, reloadWith } = await start()
    const { ended } = await follow(internalUrl, '/')
    const begun = performance.now()
    await reloadWith(sections)
    await ended
    expect(performance.now() - begun).toBeLessThan(1500)
  }
})

test('the stream of a person named by a proxy ends when a reload removes them from the admins', async () => {
  const listen = { internal: { host: '127.0.0.1', port: 0, trustProxy: ['127.0.0.1'] } }
  const { internalUrl, reloadWith } = await start({ listen, portal: { trustedHeader: 'X-Forwarded-User', admins: ['anna'] } })
  const { answer, ended } = await follow(internalUrl, '/', { headers: { 'x-forwarded-user': 'anna' } })
  expect(answer.status).toBe(200)
  await reloadWith({ listen, portal: { trustedHeader: 'X-Forwarded-User', admins: [] } })
  await ended
})

test('a stream ends when the relay stops, and the stop does not wait for readers', async () => {
  const { internalUrl, stop } = await start()
  const { ended } = await follow(internalUrl, '/')
  const begun = performance.now()
  await Promise.all([stop(), ended])
  expect(performance.now() - begun).toBeLessThan(3000)
})
