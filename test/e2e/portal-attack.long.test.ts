import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { NAUGHTY_STRINGS } from '../support/portal/naughty-strings.ts'
import { crawl, escaped, foreignIn, formsOn } from '../support/portal/portal-pages.ts'
import { type createVisitor, loggedInAt } from '../support/portal/portal-visitor.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { byForm } from '../support/runner/long-form.ts'

/** `npm run faults` stores and shows every string, and other runs every 24th. */
const STORED = NAUGHTY_STRINGS.filter((_text, at) => at % byForm(24, 24, 1) === 0)
/** How many strings the login form gets: few, because each login costs a slow password check. */
const LOGINS = byForm(10, 10, NAUGHTY_STRINGS.length)

async function start() {
  const sections = { delivery: { allowNetworks: ['127.0.0.0/8'] }, limits: { failuresPerMinute: 1_000_000 } }
  const relay = await relayOfTest(sections)
  const visitor = await loggedInAt(relay.internalUrl)
  return { ...relay, visitor, operator: await operatorOf(relay) }
}

const foreignOf = (pages: ReadonlyMap<string, string>) =>
  [...pages].flatMap(([path, page]) => foreignIn(page).map((foreign) => `${path}: ${foreign}`))

/** Makes a push that has the text in every field that may hold text. */
const eventOf = (text: string, nth: number) =>
  pushBody({
    status: text,
    detailedStatus: text,
    location: text,
    distributionType: text,
    texts: { en: text, sv: text },
    trackingIds: [`NAUGHTY${nth}`],
  })

test('there are at least 515 naughty strings, all different', () => {
  expect(NAUGHTY_STRINGS.length).toBeGreaterThanOrEqual(515)
  expect(new Set(NAUGHTY_STRINGS).size).toBe(NAUGHTY_STRINGS.length)
})

test('W1: every page shows markup from pushes, answers and names as text', async () => {
  await using receiver = await startWebhookReceiver()
  receiver.answer((nth) => ({ status: nth % 3 === 0 ? 200 : 422, body: STORED[nth % STORED.length] ?? '' }))
  const { publicUrl, visitor, operator } = await start()
  await operator('POST', '/relay/endpoints', { name: 'till', url: receiver.url })
  for (const [nth, text] of STORED.entries()) {
    expect((await push(publicUrl, eventOf(text, nth))).status).toBe(200)
    // This push is quarantined, because it has a content encoding.
    expect((await push(publicUrl, text, { 'content-encoding': `${nth}"<b>` })).status).toBe(200)
  }
  await expect.poll(() => receiver.pushes.length).toBeGreaterThanOrEqual(STORED.length / 2)
  const named = []
  for (const [nth, text] of STORED.entries()) {
    // Add the endpoints after the pushes, so that nothing is queued for them. A name with control characters is refused.
    const answer = await operator('POST', '/relay/endpoints', { name: text, url: `${receiver.url}?q=${encodeURIComponent(`${nth}`)}` })
    if (answer.status === 201) named.push({ id: String(answer.body.id), text })
  }
  expect(named.length).toBeGreaterThan(STORED.length / 2)
  const pages = new Map(await crawl(visitor))
  for (const { id } of named.slice(0, 20)) pages.set(`test ${id}`, (await visitor.post(`/webhooks/${id}/test`)).text)
  expect(foreignOf(pages)).toEqual([])
  const all = [...pages.values()].join('\n')
  const isPlain = (text: string) => /^[ -~]{4,80}$/.test(text) && text === text.trim()
  for (const { text } of named.filter((one) => isPlain(one.text))) expect([text, all.split(escaped(text)).length > 5]).toEqual([text, true])
  for (const kind of ['parcels', 'deliveries', 'inbox', 'webhooks'])
    expect([...pages.keys()].filter((path) => path.startsWith(`/${kind}/`)).length).toBeGreaterThan(STORED.length / 2)
})

test('W1, W5: every field of every form shows every naughty string as text or refuses it', async () => {
  await using receiver = await startWebhookReceiver()
  receiver.answer(() => 422)
  const { publicUrl, visitor, operator } = await start()
  await operator('POST', '/relay/endpoints', { name: 'till', url: receiver.url })
  await operator('POST', '/relay/endpoints', { name: 'shop', url: receiver.url })
  await push(publicUrl, pushBody({ trackingIds: ['1001'] }))
  await push(publicUrl, 'no JSON')
  await expect.poll(() => receiver.pushes.length).toBeGreaterThan(1)
  const found = await crawl(visitor)
  const sent = new Map(found)
  sent.set('counted', (await visitor.post('/deliveries/replay', { of: '1', to: '2', do: 'count' })).text)
  const forms = formsOn(sent)
  const paths = forms.map(({ path }) => path)
  for (const path of [
    '/login',
    '/parcels',
    '/deliveries/replay',
    '/inbox',
    '/settings',
    '/webhooks/new',
    '/webhooks/1/edit',
    '/webhooks/1/key',
  ])
    expect(paths).toContain(path)
  const faults: string[] = []
  for (const form of forms) {
    const names = Object.keys(form.fields)
    const strings = form.path === '/login' ? NAUGHTY_STRINGS.slice(0, LOGINS) : NAUGHTY_STRINGS
    // In `npm run faults` each field gets each string. In other runs the fields of a form share the strings.
    const requests = byForm(Math.ceil(strings.length / names.length), Math.ceil(strings.length / names.length), strings.length)
    for (let nth = 0; nth < requests; nth++) {
      const fields = Object.fromEntries(
        names.map((name, at) => {
          // Every second request keeps the hidden fields: if one of them is wrong, most forms check no other field.
          const isKept = nth % 2 === 1 && form.hidden.includes(name)
          return [name, isKept ? (form.fields[name] ?? '') : (strings[(nth + at * requests) % strings.length] ?? '')]
        }),
      )
      const query = new URLSearchParams(fields).toString()
      const answer = form.method === 'post' ? await visitor.post(form.path, fields) : await visitor.get(`${form.path}?${query}`)
      faults.push(...faultsOf(answer).map((fault) => `${form.method} ${form.path}?${query.slice(0, 300)}: ${fault}`))
    }
  }
  expect(faults.slice(0, 10)).toEqual([])
  expect(foreignOf(await crawl(visitor))).toEqual([])
})

test('a path that contains a naughty string is always answered with a page', async () => {
  const { visitor } = await start()
  const faults: string[] = []
  for (const text of NAUGHTY_STRINGS.filter((one) => one.isWellFormed() && !/^\.{1,2}$/.test(one))) {
    for (const path of ['/parcels/', '/webhooks/']) {
      const answer = await visitor.get(`${path}${encodeURIComponent(text).slice(0, 4000)}`)
      faults.push(...faultsOf(answer).map((fault) => `${path}${text.slice(0, 80)}: ${fault}`))
    }
  }
  expect(faults.slice(0, 10)).toEqual([])
})

/** Lists what is wrong with an answer, whatever was asked. */
function faultsOf({ status, text, headers }: Awaited<ReturnType<ReturnType<typeof createVisitor>['get']>>): readonly string[] {
  const location = headers.get('location')
  // A path that is too long gets a plain 431, without a page.
  if (status === 431) return []
  return [
    ...(status >= 500 && status !== 503 ? [`status ${status}`] : []),
    ...(location === null || /^\/(?![/\\])[\w/%.-]*$/.test(location) ? [] : [`leads to ${location}`]),
    ...headers.getSetCookie().filter((cookie) => !cookie.startsWith('parcel-relay-')),
    ...(location === null && !(headers.get('content-type') ?? '').startsWith('text/html') ? ['it is no page'] : foreignIn(text)),
  ]
}
