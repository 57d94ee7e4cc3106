import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfFile } from '../support/relay/relay-of-file.ts'

const ofFile = relayOfFile('http://127.0.0.1:9')

const loggedIn = () => loggedInAt(ofFile().internalUrl)

function idIn(list: object): string {
  return /"id":"(\d+)"/.exec(JSON.stringify(list))?.[1] ?? expect.fail('no push')
}

/** Pushes an event whose time is wrong, and returns the id of the push. */
async function pushWrong(trackingId: string): Promise<string> {
  expect((await push(ofFile().publicUrl, pushBody({ trackingIds: [trackingId], eventTime: 'soon' }))).status).toBe(200)
  const { body } = await (await operatorOf(ofFile()))('GET', `/relay/inbox?state=quarantined&parcel=${trackingId}`)
  return idIn(body)
}

test('a push in quarantine is found by parcel and reason, with the wrong bytes shown', async () => {
  const operator = await operatorOf(ofFile())
  const id = await pushWrong('70000001')
  const found = { id, parcel: { identifiers: ['70000001'] }, status: 'TerminalArrived', place: { member: 'eventTime', found: '"soon"' } }
  expect((await operator('GET', '/relay/inbox?parcel=70000001&reason=event_time')).body).toMatchObject({ pushes: [found], next: null })
  expect((await operator('GET', '/relay/inbox?parcel=70000001&reason=schema')).body).toMatchObject({ pushes: [] })
  expect((await operator('GET', '/relay/inbox?parcel=70-000001')).status).toBe(400)
  expect((await operator('GET', '/relay/inbox?reason=odd')).status).toBe(400)
  const visitor = await loggedIn()
  const list = (await visitor.get('/inbox?parcel=70000001&reason=event_time')).text
  for (const shown of [`Push ${id}`, 'eventTime: &quot;soon&quot;', '70000001', 'Reprocess all']) expect(list).toContain(shown)
  expect((await visitor.get('/inbox?parcel=70000001&reason=schema')).text).toContain('No push in this state names <code>70000001</code>.')
  expect((await visitor.get('/inbox?parcel=70-000001')).status).toBe(400)
  const page = (await visitor.get(`/inbox/${id}`)).text
  expect(page).toContain('<mark>&quot;soon&quot;</mark>')
  expect(page).toMatch(/The fault is in <code>eventTime<\/code>, bytes \d+ to \d+\./)
})

test('pushes can be listed by the time of their arrival, on the page and in the API', async () => {
  const operator = await operatorOf(ofFile())
  const id = await pushWrong('70000011')
  const { body } = await operator('GET', `/relay/inbox/${id}`)
  const receivedAt = String(Reflect.get(body, 'receivedAt'))
  const later = new Date(Date.parse(receivedAt) + 1).toISOString()
  const idsIn = async (query: string) => JSON.stringify((await operator('GET', `/relay/inbox?parcel=70000011&${query}`)).body)
  expect(await idsIn(`from=${receivedAt}&to=${later}`)).toContain(`"id":"${id}"`)
  for (const other of [`from=${later}`, `to=${receivedAt}`]) expect(await idsIn(other)).not.toContain(`"id":"${id}"`)
  expect((await operator('GET', '/relay/inbox?from=yesterday')).status).toBe(400)
  const visitor = await loggedIn()
  const typed = (time: string) => time.slice(0, -1)
  const found = (await visitor.get(`/inbox?state=all&from=${typed(receivedAt)}&to=${typed(later)}`)).text
  for (const shown of [`Push ${id}`, `name="from" type="datetime-local" value="${typed(receivedAt)}"`]) expect(found).toContain(shown)
  const none = (await visitor.get(`/inbox?state=all&from=${typed(later)}`)).text
  expect([none.includes(`Push ${id}`), none.includes('Nothing found')]).toEqual([false, true])
  const wrong = await visitor.get('/inbox?to=soon')
  expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining('To must be a time such as')])
})

test('a push says when its event happened, when it came, and how much later that was', async () => {
  const eventAt = new Date(Date.now() - 2 * 3_600_000 - 5 * 60_000).toISOString()
  expect((await push(ofFile().publicUrl, pushBody({ trackingIds: ['70000021'], eventTime: eventAt }))).status).toBe(200)
  const operator = await operatorOf(ofFile())
  const { body } = await operator('GET', '/relay/inbox?parcel=70000021')
  expect(body).toMatchObject({ pushes: [{ eventAt }] })
  const visitor = await loggedIn()
  expect((await visitor.get(`/inbox/${idIn(body)}`)).text).toMatch(
    new RegExp(
      `Event happened</dt><dd><time datetime="${eventAt}".*\n?.*Received</dt><dd><time [^>]*>[^<]*</time> <small>2 h 5 min after the event</small>`,
    ),
  )
  expect((await visitor.get(`/inbox/${await pushWrong('70000022')}`)).text).toContain('Event happened</dt><dd>not told</dd>')
})

test('a dismissed push is reprocessed only by its id, and not with the others', async () => {
  const operator = await operatorOf(ofFile())
  const [dismissed, other] = [await pushWrong('70000002'), await pushWrong('70000003')]
  const visitor = await loggedIn()
  expect((await visitor.get(`/inbox/${dismissed}`)).text).toContain('>Dismiss<')
  expect((await visitor.post(`/inbox/${dismissed}/dismiss`)).headers.get('location')).toBe(`/inbox/${dismissed}`)
  const page = (await visitor.get(`/inbox/${dismissed}`)).text
  expect([page.includes('>Dismiss<'), page.includes('>Reprocess<')]).toEqual([false, true])
  expect((await visitor.get('/inbox?state=dismissed')).text).toContain(`Push ${dismissed}`)
  const counted = (await operator('POST', '/relay/inbox/reprocess?reason=event_time&dryRun=true')).body
  expect(counted).toMatchObject({ dryRun: true, reasons: [{ reason: 'event_time' }] })
  const { count } = Object.fromEntries(Object.entries(counted))
  expect((await visitor.get('/inbox')).text).toMatch(/>Reprocess all \d+</)
  const done = await operator('POST', '/relay/inbox/reprocess?reason=event_time')
  expect(done).toMatchObject({ status: 200, body: { count, dryRun: false, outcomes: { quarantined: count, recorded: 0 } } })
  const again = await visitor.post('/inbox', { reason: 'event_time' })
  expect([again.status, again.text.includes('still not understood</strong> and in quarantine')]).toEqual([200, true])
  expect((await operator('GET', `/relay/inbox/${dismissed}`)).body).toMatchObject({ state: 'dismissed', reason: 'event_time' })
  expect((await operator('POST', `/relay/inbox/${dismissed}/reprocess`)).body).toMatchObject({ outcome: 'quarantined' })
  expect((await operator('GET', `/relay/inbox/${dismissed}`)).body).toMatchObject({ state: 'quarantined' })
  expect((await operator('POST', `/relay/inbox/${other}/dismiss`)).body).toMatchObject({ state: 'dismissed' })
  const { body: trail } = await operator('GET', '/relay/audit?limit=10')
  expect(JSON.stringify(trail)).toMatch(/push\.dismissed.*push\.reprocessed.*inbox\.reprocessed.*inbox\.reprocessed.*push\.dismissed/)
})

test('a recorded push, or one that does not exist, cannot be dismissed', async () => {
  const operator = await operatorOf(ofFile())
  expect((await push(ofFile().publicUrl, pushBody({ trackingIds: ['70000004'] }))).status).toBe(200)
  const { body } = await operator('GET', '/relay/inbox?parcel=70000004')
  const id = idIn(body)
  const refused = await operator('POST', `/relay/inbox/${id}/dismiss`)
  expect([refused.status, refused.body.type]).toEqual([409, 'urn:parcel-relay:error:not_dismissable'])
  expect((await operator('POST', '/relay/inbox/999999/dismiss')).status).toBe(404)
  const shown = await (await loggedIn()).post(`/inbox/${id}/dismiss`)
  expect([shown.status, shown.text.includes('Only a push in quarantine can be dismissed')]).toEqual([409, true])
})

test('more than a hundred pushes are reprocessed by a job', async () => {
  const operator = await operatorOf(ofFile())
  const bodies = Array.from({ length: 101 }, (_, nth) => `{"nth":${nth}`)
  expect((await Promise.all(bodies.map((body) => push(ofFile().publicUrl, body)))).every(({ status }) => status === 200)).toBe(true)
  const started = await operator('POST', '/relay/inbox/reprocess?reason=json_syntax')
  expect(started).toMatchObject({ status: 202, body: { kind: 'reprocess', task: { state: 'quarantined', reason: 'json_syntax' } } })
  await expect
    .poll(async () => (await operator('GET', `/relay/jobs/${String(started.body.id)}`)).body)
    .toMatchObject({ state: 'done', progress: { done: 101 }, result: { count: 101 } })
})

test('more than a hundred pushes are dismissed by a job, which is audited once with its count', async () => {
  const operator = await operatorOf(ofFile())
  const bodies = Array.from({ length: 101 }, (_, nth) => `${'['.repeat(70)}${nth}${']'.repeat(70)}`)
  expect((await Promise.all(bodies.map((body) => push(ofFile().publicUrl, body)))).every(({ status }) => status === 200)).toBe(true)
  const counted = await operator('POST', '/relay/inbox/dismiss?reason=too_deep&dryRun=true')
  expect(counted).toMatchObject({ status: 200, body: { count: 101, dryRun: true, reasons: [{ reason: 'too_deep', count: 101 }] } })
  const started = await operator('POST', '/relay/inbox/dismiss?reason=too_deep')
  expect(started).toMatchObject({ status: 202, body: { kind: 'dismiss', task: { state: 'quarantined', reason: 'too_deep' } } })
  await expect
    .poll(async () => (await operator('GET', `/relay/jobs/${String(started.body.id)}`)).body)
    .toMatchObject({ state: 'done', progress: { done: 101 }, result: { count: 101 } })
  expect((await (await loggedIn()).get('/jobs')).text).toContain('Dismiss what is in quarantine')
  const left = await operator('POST', '/relay/inbox/dismiss?reason=too_deep')
  expect(left).toMatchObject({ status: 200, body: { count: 0, dryRun: false } })
  expect((await operator('POST', '/relay/inbox/dismiss?state=expired')).status).toBe(400)
  const { body: trail } = await operator('GET', '/relay/audit?limit=3')
  expect(JSON.stringify(trail).match(/inbox\.dismissed/g)).toHaveLength(1)
  expect(JSON.stringify(trail)).toContain('"count":101')
})

test('senders of pushes whose signature does not match are shown with their counts', async () => {
  const operator = await operatorOf(ofFile())
  for (let times = 0; times < 3; times++) {
    expect(
      (await push(ofFile().publicUrl, '{}', { 'x-service-hmac-sha256': times === 0 ? 'no signature' : `${'A'.repeat(43)}=` })).status,
    ).toBe(401)
  }
  expect((await operator('GET', '/relay/upstream')).body).toMatchObject({ refusedSignatures: [{ address: '127.0.0.1', count: 3 }] })
  expect((await (await loggedIn()).get('/inbox')).text).toMatch(/Refused signatures.*<code>127\.0\.0\.1<\/code>/s)
})
