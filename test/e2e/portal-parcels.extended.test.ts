import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWorld } from '../faults/world.ts'
import { answerBody, pushBody } from '../support/history/builders.ts'
import { type createVisitor, loggedInAt } from '../support/portal/portal-visitor.ts'
import { SHOP } from '../support/relay/relay.ts'

let world: Awaited<ReturnType<typeof startWorld>>
let visitor: ReturnType<typeof createVisitor>
beforeAll(async () => {
  world = await startWorld({ portal: { publicUrl: 'https://ops.example/relay' } })
  visitor = await loggedInAt(world.internalUrl)
})
afterAll(() => world.stop())

const EVENT = { eventTime: '2026-03-01T10:00:00.250Z' }
const ENTRY = { eventTimestamp: EVENT.eventTime }
const rowsOf = (page: string) =>
  (page.split('aria-label="History, newest first"')[1]?.split('</table>')[0] ?? '')
    .split('<tr')
    .slice(2)
    .map((row) =>
      row
        .replaceAll(/<small>/g, ' | ')
        .replaceAll(/<[^>]*>/g, ' ')
        .replaceAll(/\s+/g, ' '),
    )

test('an entry shows when a push found it, and whether a poll has confirmed it', async () => {
  await world.push(pushBody({ trackingIds: ['82000001'], ...EVENT }))
  const [row = ''] = rowsOf((await visitor.get('/parcels/82000001')).text)
  expect(row).toMatch(/\d\d:\d\d:\d\d \| \d+ d( \d+ h)? later push \| no poll has listed it yet/)
  world.carrier.says.set('PP100000001SE', () => answerBody({ trackingIds: ['82000001'], statuses: [ENTRY] }))
  await world.all('PP100000001SE')
  const { text } = await visitor.get('/parcels/PP100000001SE')
  expect(rowsOf(text)[0]).toMatch(/ push \| a poll agreed at .*\d\d:\d\d/)
})

test('an entry that came seconds after its event shows its time and how late it was, not "at once"', async () => {
  const eventTime = new Date(Date.now() - 3500).toISOString()
  await world.push(pushBody({ trackingIds: ['82000016'], ...EVENT, eventTime }))
  const [row = ''] = rowsOf((await visitor.get('/parcels/82000016')).text)
  expect(row).toMatch(/\d\d:\d\d:\d\d \| [\d.]+ (s|min)( \d+ s)? later push/)
  expect(row).not.toContain('at once')
})

test('an entry that a poll found first shows when its push came, or that none came', async () => {
  const entries = [ENTRY, { ...ENTRY, status: 'DeliverySucceeded', eventTimestamp: new Date(Date.now() + 1000).toISOString() }]
  world.carrier.says.set('PP100000002SE', () => answerBody({ trackingIds: ['82000002'], statuses: entries }))
  await world.all('PP100000002SE')
  const before = rowsOf((await visitor.get('/parcels/PP100000002SE')).text)
  expect(before[0]).toMatch(/(at once|later) .*poll \| no push came/)
  expect(before[1]).toMatch(/ poll \| from before we knew the parcel/)
  await world.push(pushBody({ trackingIds: ['82000002'], ...EVENT }))
  expect(rowsOf((await visitor.get('/parcels/PP100000002SE')).text)[1]).toMatch(/ poll \| the push came at .*\d\d:\d\d/)
})

test('the consumer view shows only what a consumer sees, in one language', async () => {
  await world.push(pushBody({ trackingIds: ['82000003'], ...EVENT, consumer: { en: 'Near you', sv: 'Nära dig' } }))
  await world.push(pushBody({ trackingIds: ['82000003'], status: 'TerminalUpdated', displayToConsumer: false, location: 'Kiruna' }))
  const { text } = await visitor.get('/parcels/82000003')
  expect(text).toContain('>Consumer: English</a>')
  expect(text).toContain('href="/relay/parcels/82000003?view=consumer&amp;language=sv">Consumer: Swedish</a>')
  const swedish = (await visitor.get('/parcels/82000003?view=consumer&language=sv')).text
  expect(swedish).toContain('Nära dig')
  for (const other of ['Near you', 'Kiruna']) expect(swedish).not.toContain(other)
  expect(swedish).toContain('aria-current="page">Consumer: Swedish</a>')
})

test('the link to share begins with portal.publicUrl, and a reader sees no buttons', async () => {
  await world.push(pushBody({ trackingIds: ['82000004'] }))
  const reader = await loggedInAt(world.internalUrl, SHOP)
  for (const { text } of [await visitor.get('/parcels/82000004'), await reader.get('/parcels/82000004')])
    expect(text.replaceAll('<wbr>', '')).toContain('id="share-url">https://ops.example/relay/parcels/82000004</code>')
  expect((await reader.get('/parcels/82000004')).text).not.toMatch(/Refresh now|Stop watching/)
})

test('one button asks the carrier about an unknown parcel and watches it', async () => {
  world.carrier.says.set('PP100000005SE', () => answerBody({ trackingIds: ['82000005'] }))
  const unknown = await visitor.get('/parcels?query=pp100000005se')
  expect(unknown.text).toContain('>Ask the carrier about PP100000005SE</button>')
  expect((await visitor.post('/parcels/PP100000005SE/ask')).headers.get('location')).toBe('/relay/parcels/PP100000005SE')
  const { text } = await visitor.get('/parcels/PP100000005SE')
  expect(text).toContain('TerminalArrived')
  expect(text).toContain('>Stop watching</button>')
})

test('the page says that the carrier does not know the parcel, or cannot be asked', async () => {
  expect((await visitor.post('/parcels/PP100000006SE/ask')).text).toContain('The carrier does not know it')
  world.carrier.setDown(true)
  const down = await visitor.post('/parcels/PP100000006SE/refresh')
  world.carrier.setDown(false)
  expect(down.status).toBe(503)
  expect(down.text).toContain('The carrier cannot be asked now.')
  expect(down.text).not.toContain('The store cannot be read')
})

async function watchFile(content: string | Uint8Array<ArrayBuffer>, name: string, fields: Readonly<Record<string, string>> = {}) {
  const form = new FormData()
  for (const [field, value] of Object.entries({ identifiers: '', column: '', ...fields })) form.append(field, value)
  form.append('file', new Blob([content]), name)
  return await visitor.post('/parcels', form)
}

test('the form takes files of parcels: CSV with a column, NDJSON, and UTF-16 from a spreadsheet', async () => {
  const csv = await watchFile('order;trackingNumber\r\n1;PP100000008SE\r\n2;="82000008"\r\n', 'orders.csv')
  expect([csv.status, csv.text.includes('2 parcels are watched, 2 new.')]).toEqual([200, true])
  expect((await watchFile('{"identifier": "82000009"}\n"82000010"\n', 'list.NDJSON')).text).toContain('2 parcels are watched, 2 new.')
  const utf16 = new Uint8Array(Buffer.from('\ufeffnumber\tname\r\n82000011\tBo', 'utf16le'))
  expect((await watchFile(utf16, 'sheet.txt', { column: 'number' })).text).toContain('1 parcel is watched, 1 new.')
  const typed = await watchFile('', '', { identifiers: '82000012' })
  expect(typed.text).toContain('1 parcel is watched, 1 new.')
})

test('the page explains a mistake in a file of parcels, with the number of its line', async () => {
  const { text } = await watchFile('trackingNumber,name\n82000013,a\n<b>no number,b\n', '"><b>.csv')
  expect(text).toContain('1 parcel is watched, 1 new.')
  expect(text).toMatch(/Line 3: .*&lt;b&gt;no number,b/)
  const unnamed = await watchFile('order,parcel\n1,82000014\n', 'orders.csv')
  expect([unnamed.status, unnamed.text]).toEqual([
    400,
    expect.stringContaining('The first line has &quot;order&quot;, &quot;parcel&quot;.'),
  ])
  const both = await watchFile('82000014', 'orders.csv', { identifiers: '82000014' })
  expect([both.status, both.text]).toEqual([400, expect.stringContaining('Give a list or a file, not both.')])
  const empty = await watchFile('\n \n', 'orders.csv')
  expect([empty.status, empty.text]).toEqual([400, expect.stringContaining('The list is empty')])
  expect((await watchFile('82000014\n'.repeat(500_000), 'orders.csv')).status).toBe(413)
  const long = await watchFile('82000014\n'.repeat(100_001), 'orders.csv')
  expect([long.status, long.text]).toEqual([413, expect.stringContaining('at most 100000 lines')])
  expect((await visitor.get('/parcels/82000014')).status).toBe(404)
})

test('a file posted from another site, or to a page that takes no file, is refused', async () => {
  const form = new FormData()
  form.append('file', new Blob(['82000015']), 'list.csv')
  expect((await visitor.post('/parcels', form, { 'sec-fetch-site': 'cross-site' })).status).toBe(403)
  expect((await visitor.post('/parcels/82000001/unwatch', form)).status).toBe(400)
  expect((await visitor.get('/parcels/82000015')).status).toBe(404)
})

test('the form takes a list of parcels, and names each line that is not an identifier', async () => {
  const answer = await visitor.post('/parcels', { identifiers: 'PP100000007SE\r\n\r\n  82000007 \r\nno <b>number\r\n' })
  expect(answer.text).toContain('2 parcels are watched, 2 new.')
  expect(answer.text).toMatch(/Line 4: .*no &lt;b&gt;number/)
  expect((await visitor.get('/parcels/PP100000007SE')).text).toContain('Stop watching')
  const none = await visitor.post('/parcels', { identifiers: ' ' })
  expect([none.status, none.text.includes('The list is empty.')]).toEqual([400, true])
})

test('numbers are found as people type them, and a pasted list may be as long as a file', async () => {
  const pasted = 'PP 100 000 016 se\n'.repeat(40_000)
  const form = new FormData()
  form.append('identifiers', pasted)
  expect((await visitor.post('/parcels', form)).text).toContain('1 new.')
  const found = await visitor.get(`/parcels?query=${encodeURIComponent('pp-100 000\u200b016\u00a0SE')}`)
  expect([found.status, found.headers.get('location')]).toEqual([303, '/relay/parcels/PP100000016SE'])
})

test('a webhook whose name has odd spaces can be removed by the name that the page shows', async () => {
  const name = 'two  spaces\u00a0here'
  const added = await visitor.post('/webhooks/new', { name, url: 'https://receiver.example/', sharedKey: '' })
  const id = /\/webhooks\/(\d+)/.exec(added.text)?.[1] ?? ''
  const removed = await visitor.post(`/webhooks/${id}/remove`, { confirm: 'two spaces here' })
  expect(removed.headers.get('location')).toBe('/relay/webhooks')
})

test('the list of parcels says what it shows, how many there are and in which order', async () => {
  for (const id of ['85000001', '85000002', '85000003']) await world.push(pushBody({ trackingIds: [id], ...EVENT }))
  await world.push(pushBody({ trackingIds: ['85000004'], ...EVENT, status: 'DeliveryStarted' }))
  const lead = async (query: string) => /<p class="lead"[^>]*>([^<]*)/.exec((await visitor.get(`/parcels?${query}`)).text)?.[1]
  expect(await lead('query=8500')).toBe('4 parcels with an identifier that begins with 8500, sorted by identifier. 4 on this page.')
  expect(await lead('query=8500&status=DeliveryStarted')).toMatch(
    /^1 parcel with an identifier that begins with 8500 with the latest status DeliveryStarted, sorted by identifier/,
  )
  expect(await lead('')).toMatch(/^\d+ parcels, the next check first, those without checks last\. \d+ on this page\.$/)
  expect(await lead('stopped=stale')).toBe('No parcel matches the filters.')
})

test('a parcel is told in the words of the carrier first, with its kind of delivery', async () => {
  const texts = { texts: { sv: 'Lastat på turen', en: 'Loaded on the round' } }
  await world.push(pushBody({ trackingIds: ['86000001'], ...EVENT, ...texts, location: 'Kiruna', distributionType: 'Doorstep' }))
  const { text } = await visitor.get('/parcels/86000001')
  expect(/<p class="lead"[^>]*>(.*?)<\/p>/s.exec(text)?.[1]).toMatch(/^<span lang="en">Loaded on the round<\/span>, Kiruna, /)
  expect(text).toContain('<dt>Kind of delivery</dt><dd>Doorstep</dd>')
  await world.push(pushBody({ trackingIds: ['86000002'], ...EVENT, texts: {}, distributionType: '' }))
  const unknown = (await visitor.get('/parcels/86000002')).text
  expect(unknown).toContain('<dt>Kind of delivery</dt><dd>not known yet</dd>')
  expect(/<p class="lead"[^>]*>(.*?)<\/p>/s.exec(unknown)?.[1]).toMatch(/^ArrivedT2, Stockholm, /)
})

test('the page of a parcel says who began its watch, and leads to all orders about it', async () => {
  await world.push(pushBody({ trackingIds: ['82000031'] }))
  const factOf = async (who: typeof visitor) => /Watched<[\s\S]*?<\/(?:dd|div)>/.exec((await who.get('/parcels/82000031')).text)?.[0]
  expect(await factOf(visitor)).not.toContain(' by ')
  await visitor.post('/parcels/82000031/watch')
  expect((await factOf(visitor))?.replaceAll(/<[^>]*>/g, ' ')).toMatch(/by\s+admin\s+since/)
  const reader = await loggedInAt(world.internalUrl, SHOP)
  expect(await factOf(reader)).not.toContain('admin')
  const { text } = await visitor.get('/audit?about=parcel&id=82000031')
  expect((await visitor.get('/parcels/82000031')).text).toContain('/audit?about=parcel&amp;id=82000031')
  expect(text).toContain('82000031')
})
