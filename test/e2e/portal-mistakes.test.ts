import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { crawl, escaped, formsOn } from '../support/portal/portal-pages.ts'
import { createVisitor, loggedInAt } from '../support/portal/portal-visitor.ts'
import { formIn, withoutIds } from '../support/portal/sent-form.ts'
import { ADMIN, push, SHOP } from '../support/relay/relay.ts'
import { relayOfFile } from '../support/relay/relay-of-file.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { INTERNAL_ROUTES } from '../support/relay/routes.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'

const ofFile = relayOfFile(NO_CARRIER, { delivery: { allowNetworks: ['127.0.0.0/8'] } })

/** Makes the portal hold one of each thing: a webhook, a parcel with deliveries, and a push in quarantine. */
async function fill(): Promise<string> {
  const { publicUrl, internalUrl } = ofFile()
  const visitor = await loggedInAt(internalUrl)
  await visitor.post('/webhooks/new', { url: 'http://127.0.0.1:9/hook', name: 'filled' })
  await push(publicUrl, pushBody({ trackingIds: ['FILLED1001'] }))
  await push(publicUrl, '{"format":"unknown"}')
  const list = (await visitor.get('/webhooks')).text
  return /\/webhooks\/(\d+)"><strong>filled</.exec(list)?.[1] ?? expect.fail('no webhook')
}

/** Returns the hidden fields of a form as a browser reads them. */
function readFields(page: string, path: string): Readonly<Record<string, string>> {
  const unescaped = (text: string) =>
    text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
  return Object.fromEntries(Object.entries(formIn(page, path)).map(([name, value]) => [name, unescaped(value)]))
}

/** Fields whose entries never come back. */
const SECRETS = ['sharedKey', 'password']

test('a mistake in any form keeps what was typed, and the page says what is wrong', async () => {
  await fill()
  const visitor = await loggedInAt(ofFile().internalUrl)
  const forms = formsOn(await crawl(visitor)).filter(
    ({ method, fields, hidden }) => method === 'post' && Object.keys(fields).some((name) => !hidden.includes(name) && name !== 'do'),
  )
  const paths = forms.map(({ path }) => path.replaceAll(/(?<=\/)\d+(?=\/)/g, 'N'))
  expect(paths).toEqual(
    expect.arrayContaining([
      '/login',
      '/webhooks/new',
      '/webhooks/N/edit',
      '/webhooks/N/key',
      '/webhooks/N/remove',
      '/parcels',
      '/parcels/FILLED1001/erase',
      '/jobs/rebuild',
      '/watchdogs/try',
      '/deliveries/replay',
    ]),
  )
  for (const { path, fields, hidden } of forms) {
    const typed = Object.fromEntries(
      Object.keys(fields)
        .filter((name) => !hidden.includes(name))
        .map((name) => [name, name in WRONG ? (WRONG[name] ?? '') : `typed “${name}” <&>`]),
    )
    const kept = Object.fromEntries(Object.entries(fields).filter(([name]) => hidden.includes(name) && name !== 'form'))
    const answer = await visitor.post(path, { ...kept, ...typed })
    const shown = [path, answer.status >= 400 && answer.status < 500, / role="alert"/.test(answer.text)]
    expect(shown).toEqual([path, true, true])
    for (const [name, value] of Object.entries(typed)) {
      if (SECRETS.includes(name)) expect([path, name, answer.text.includes(escaped(value))]).toEqual([path, name, false])
      else if (TEXTS.includes(name)) expect([path, name, answer.text.includes(escaped(value))]).toEqual([path, name, true])
    }
    expect(answer.text).toMatch(new RegExp(`<form[^>]* action="${path}"`))
  }
})

/** The fields in which people type. */
const TEXTS = [
  'url',
  'name',
  'detailedStatus',
  'distributionType',
  'rate',
  'concurrency',
  'schedule',
  'from',
  'confirm',
  'parcels',
  'rules',
  'since',
  'username',
  'column',
]
/** Entries of other fields, each wrong in its own way or one of a choice. */
const WRONG: Readonly<Record<string, string>> = {
  sharedKey: 'shortcanary',
  password: 'canaryword',
  key: 'given',
  at: '',
  identifiers: ' ',
  do: 'count',
  to: '',
  of: '',
  state: 'dead',
  status: 'X',
  statuses: 'all',
  signature: 'carrier',
  refusals: 'wait',
  backfill: 'true',
  displayToConsumer: '',
}

test('a mistake at one field is shown beside that field', async () => {
  const id = await fill()
  const visitor = await loggedInAt(ofFile().internalUrl)
  const page = (await visitor.get(`/webhooks/${id}`)).text
  const key = await visitor.post(`/webhooks/${id}/key`, { ...formIn(page, `/webhooks/${id}/key`), sharedKey: 'short-canary', at: 'now' })
  expect(key.status).toBe(400)
  expect(key.text).toMatch(
    /<input aria-invalid="true" id="nk"[^>]*aria-describedby="nk-error nk-hint"><span class="err" id="nk-error">[^<]+</,
  )
  expect(key.text).toMatch(/<input type="checkbox" id="leak" name="at" value="now" checked>/)
  expect(key.text).toMatch(/<details class="plain" open><summary>Replace the key/)
  expect(key.text).not.toContain('short-canary')
  const removal = await visitor.post(`/webhooks/${id}/remove`, { ...formIn(page, `/webhooks/${id}/remove`), confirm: 'fillled' })
  expect([
    removal.status,
    removal.text.includes(
      'name="confirm" autocomplete="off" spellcheck="false" value="fillled"><span class="err" id="sure-error">Type the name filled to confirm.',
    ),
  ]).toEqual([400, true])
  expect(removal.text).toContain('<details open><summary>Remove</summary>')
  const list = await visitor.post('/parcels', { identifiers: 'GOOD1001\nbad one!\n<i>\n' })
  expect(list.text).toContain('aria-describedby="ids-hint">\nbad one!\n&lt;i&gt;</textarea>')
  expect((await visitor.get(`/webhooks/${id}`)).status).toBe(200)
})

test('every address of the portal that is opened as a link answers with a page that has a way on', async () => {
  const id = await fill()
  const visitor = await loggedInAt(ofFile().internalUrl)
  const forms = formsOn(await crawl(visitor)).map(({ path }) => path)
  const typos = [
    '/webhooks/',
    '/webhooks//',
    `/webhooks/${id}/`,
    '/parcels/',
    `/webhooks/${id}/tset`,
    '/webhooks/999999/test',
    '/inbox/1/2/3',
    '/settings/nothing',
    '/jobs/1/cancel',
    '/parcels/NOBODY1/ask',
  ]
  const links = [...(await crawl(visitor)).keys()]
  expect(INTERNAL_ROUTES.length).toBeGreaterThan(10)
  for (const path of new Set([...forms, ...links, ...typos, '/logout'])) {
    let answer = await visitor.get(path)
    for (let hops = 0; answer.status === 303 && hops < 3; hops++) answer = await visitor.get(answer.headers.get('location') ?? '')
    expect([path, answer.headers.get('content-type')]).toEqual([path, 'text/html; charset=utf-8'])
    if (path !== '/login') expect([path, /<nav class="crumbs"|aria-current="page"/.test(answer.text)]).toEqual([path, true])
  }
  expect((await visitor.get(`/webhooks/${id}/test`)).headers.get('location')).toBe(`/webhooks/${id}`)
  expect((await visitor.get('/webhooks/?state=failing')).headers.get('location')).toBe('/webhooks?state=failing')
  expect((await visitor.get('/jobs/1/cancel')).headers.get('location')).toBe('/jobs')
})

test('an address without a page answers browsers with a page, and apps with a problem document', async () => {
  const visitor = await loggedInAt(ofFile().internalUrl)
  expect((await visitor.get('/wehbooks', { accept: 'text/html,*/*;q=0.8' })).headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect((await visitor.get('/wehbooks')).headers.get('content-type')).toBe('application/problem+json')
  expect((await visitor.get('/relay/nothing')).headers.get('content-type')).toBe('application/problem+json')
})

test('pushes in quarantine are dismissed by reason and as listed, once their count was confirmed', async () => {
  const { internalUrl, publicUrl } = await relayOfTest()
  const visitor = await loggedInAt(internalUrl)
  for (let nth = 0; nth < 3; nth++) await push(publicUrl, `{"format":"unknown ${nth}"}`)
  const reason = /name="reason" value="(\w+)"/.exec((await visitor.get('/inbox')).text)?.[1] ?? ''
  const asked = await visitor.post('/inbox', { reason, do: 'count' })
  expect([asked.status, asked.text.includes('<strong>Dismiss 3 pushes:')]).toEqual([200, true])
  await push(publicUrl, '{"format":"unknown later"}')
  const late = await visitor.post('/inbox', { reason, do: 'dismiss', counted: '3' })
  expect(late.text).toContain('<strong>Dismiss 4 pushes:')
  expect((await visitor.get('/inbox?state=dismissed')).text).toContain('Nothing found')
  const listed = (await visitor.get(`/inbox?reason=${reason}`)).text
  expect(listed).toContain('Dismiss the 4 pushes listed here')
  const ids = / name="ids" value="([^"]+)"/.exec(listed)?.[1]?.split(' ').slice(1).join(' ') ?? ''
  expect((await visitor.post('/inbox', { ids, do: 'count' })).text).toContain('<strong>Dismiss 3 pushes of the list?')
  expect((await visitor.post('/inbox', { ids, do: 'dismiss', counted: '3' })).text).toContain('3 pushes are dismissed.')
  expect((await visitor.post('/inbox', { reason, do: 'dismiss', counted: '1' })).text).toContain('1 push is dismissed.')
  const audit = (await visitor.get('/audit')).text
  expect(audit).toMatch(/push dismissed/)
  expect(audit).toMatch(/inbox dismissed/)
})

test('over plain http a portal that is configured for https says so instead of losing the login', async () => {
  const { internalUrl } = await relayOfTest({ portal: { publicUrl: 'https://ops.example' } })
  const visitor = createVisitor(internalUrl)
  expect((await visitor.get('/login')).text).toContain('The portal’s address is <strong>https://ops.example</strong>')
  const refused = await visitor.post('/login', { ...ADMIN }, { origin: internalUrl })
  expect([refused.status, refused.text.includes('over plain http, but portal.publicUrl is https://ops.example')]).toEqual([403, true])
})

test('W8: one app cannot take all live places, and a HEAD takes none', async () => {
  const { internalUrl } = await relayOfTest()
  const leaving = new AbortController()
  const visitor = await loggedInAt(internalUrl, SHOP)
  const cookie = [...visitor.jar].map(([name, value]) => `${name}=${value}`).join('; ')
  const open = async (method: string, own: string) =>
    (await fetch(`${internalUrl}/live?page=%2F`, { method, headers: { cookie: own }, signal: leaving.signal })).status
  for (let nth = 0; nth < 30; nth++) expect(await open('HEAD', cookie)).toBe(200)
  const own = await Promise.all(Array.from({ length: 24 }, () => open('GET', cookie)))
  expect(own.filter((status) => status === 200)).toHaveLength(20)
  const other = await loggedInAt(internalUrl)
  expect(await open('GET', [...other.jar].map(([name, value]) => `${name}=${value}`).join('; '))).toBe(200)
  leaving.abort()
})

test('a link that is opened without a session shows the login, which leads to its page', async () => {
  const { internalUrl } = ofFile()
  const visitor = createVisitor(internalUrl)
  for (const path of ['/deliveries?state=dead&from=2026-01-01T00:00', '/webhooks/7/test', '/webhooks/']) {
    const asked = await visitor.get(path)
    expect([asked.status, asked.text.includes('<h1>Log in</h1>')]).toEqual([401, true])
  }
  const login = formIn((await visitor.get('/deliveries?state=dead')).text, '/login')
  const wrong = await visitor.post('/login', { ...login, username: 'admin', password: 'wrong' })
  expect(wrong.status).toBe(401)
  const again = formIn(wrong.text, '/login')
  expect((await visitor.post('/login', { ...again, ...ADMIN })).headers.get('location')).toBe('/deliveries?state=dead')
  for (const asked of [
    '//evil.example',
    'https://evil.example/webhooks',
    '/\\evil.example',
    '/nothing',
    '/assets/portal.js',
    '/webhooks/1\r\nX: y',
  ])
    expect((await visitor.post('/login', { ...ADMIN, asked })).headers.get('location')).toMatch(/^\/(?:webhooks(?:\/1X:%20y)?)?$/)
})

test('W7: a form sent after the session ended comes back filled, and is not carried out', async () => {
  const id = await fill()
  const { internalUrl } = ofFile()
  const visitor = await loggedInAt(internalUrl)
  const page = (await visitor.get(`/webhooks/${id}/edit`)).text
  const hidden = readFields(page, `/webhooks/${id}/edit`)
  await visitor.post('/logout')
  const sent = {
    ...hidden,
    url: 'http://127.0.0.1:9/"changed"',
    name: 'renamed',
    status: 'DeliverySucceeded',
    statuses: 'some',
    sharedKey: 'canary-key',
    refusals: 'skip',
  }
  const login = await visitor.post(`/webhooks/${id}/edit`, sent)
  expect([login.status, login.text.includes('Your session has ended')]).toEqual([401, true])
  for (const secret of ['canary-key', hidden.form ?? '?']) expect(login.text).not.toContain(secret)
  const fields = readFields(login.text, '/login')
  const back = await visitor.post('/login', { ...fields, ...ADMIN })
  expect([back.status, back.text.includes('Nothing was done yet.')]).toEqual([200, true])
  expect(back.text).toContain('value="http://127.0.0.1:9/&quot;changed&quot;"')
  expect(back.text).toMatch(/name="status" value="DeliverySucceeded"[^>]* checked>/)
  expect(back.text).toContain('<option value="skip" selected>')
  expect(back.text).not.toContain('canary-key')
  expect(withoutIds((await visitor.get(`/webhooks/${id}/edit`)).text)).toBe(withoutIds(page))
  const again = readFields(back.text, `/webhooks/${id}/edit`)
  expect(again.shown).toBe(hidden.shown)
  expect(again.form).not.toBe(hidden.form)
})

test('a sent form that is too long to keep is not kept, and the login page says so', async () => {
  const visitor = createVisitor(ofFile().internalUrl)
  const long = await visitor.post('/parcels', { identifiers: 'A'.repeat(70_000) })
  expect([long.status, long.text.includes('too long to keep'), long.text.includes('AAAA')]).toEqual([401, true, false])
})
