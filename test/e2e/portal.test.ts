import { once } from 'node:events'
import { get } from 'node:http'
import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { createVisitor, loggedInAt } from '../support/portal/portal-visitor.ts'
import { withoutIds } from '../support/portal/sent-form.ts'
import { ADMIN, ask, CARRIER_LOGIN, logIn, push, type Sections, SHARED_KEY, SHOP } from '../support/relay/relay.ts'
import { relayOfFile } from '../support/relay/relay-of-file.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'

const SECTIONS = { delivery: { allowNetworks: ['127.0.0.0/8'] } }
const ofFile = relayOfFile(NO_CARRIER, SECTIONS)

const start = (sections: Sections) => relayOfTest({ ...SECTIONS, ...sections })

const loggedIn = (login = ADMIN, url = ofFile().internalUrl) => loggedInAt(url, login)

function idOf(list: string, name: string): string {
  return new RegExp(`/webhooks/(\\d+)"><strong>${name}<`).exec(list)?.[1] ?? expect.fail(`no webhook ${name}`)
}

test('W5: a visitor who is not logged in sees the login at the address of every page', async () => {
  const visitor = createVisitor(ofFile().internalUrl)
  for (const path of ['/', '/webhooks', '/webhooks/new', '/parcels', '/parcels/1001', '/nothing'])
    expect([path, (await visitor.get(path, { accept: 'text/html' })).status]).toEqual([path, 401])
  expect((await visitor.post('/webhooks/1/remove', { confirm: 'x' })).status).toBe(401)
  for (const query of ['?next=//evil.example', '?to=https://evil.example']) {
    const visitor = createVisitor(ofFile().internalUrl)
    const asked = await visitor.get(`/${query}`, { referer: 'https://evil.example/', host: 'evil.example' })
    expect([asked.status, asked.headers.get('location')]).toEqual([401, null])
    expect(asked.text).toContain('<form method="post" action="/login">')
    expect((await visitor.post(`/login${query}`, { ...ADMIN, next: '//evil.example' })).headers.get('location')).toBe('/')
  }
})

test('a wrong password is refused on the page, and does not say whether the user exists', async () => {
  const visitor = createVisitor(ofFile().internalUrl)
  const wrong = await visitor.logIn({ username: 'admin', password: 'wrong' })
  const unknown = await visitor.logIn({ username: 'nobody', password: 'wrong' })
  expect([wrong.status, unknown.status]).toEqual([401, 401])
  expect(wrong.text).toContain('The user name or the password is wrong.')
  expect(unknown.text.replaceAll('nobody', 'admin')).toBe(wrong.text)
  expect(visitor.jar.size).toBe(0)
})

test('W3: too many wrong passwords are refused, but users who logged in before still can', async () => {
  const { internalUrl } = await start({ limits: { failuresPerMinute: 5 } })
  const visitor = createVisitor(internalUrl)
  expect((await visitor.logIn()).status).toBe(303)
  const tries = []
  for (let nth = 0; nth < 8; nth++) tries.push(await visitor.logIn({ username: 'shop', password: `guess ${nth}` }))
  expect(tries.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401, 429, 429, 429])
  expect(tries.at(-1)?.text).toContain('Too many wrong passwords from this address.')
  expect((await visitor.logIn({ username: 'shop', password: SHOP.password })).status).toBe(429)
  expect((await visitor.logIn()).status).toBe(303)
})

test('W2: opening the address of a form as a link changes nothing', async () => {
  const visitor = await loggedIn()
  const paths = [
    '/logout',
    '/webhooks/1/remove',
    '/webhooks/1/retry',
    '/webhooks/1/key',
    '/parcels/1001/watch',
    '/parcels/1001/ask',
    '/inbox/1/reprocess',
  ]
  for (const path of paths) expect([path, (await visitor.get(path)).status]).toEqual([path, 303])
  expect((await visitor.get('/webhooks')).status).toBe(200)
})

test('the session’s cookie is HttpOnly and Lax, and named after the relay', async () => {
  const visitor = createVisitor(ofFile().internalUrl)
  const cookie = (await visitor.logIn()).headers.get('set-cookie') ?? ''
  expect(cookie).toMatch(/^parcel-relay-[0-9a-f]{8}=[\w.-]+; Path=\/; HttpOnly; SameSite=Lax$/)
})

test('behind https the cookie is Secure, and has the path of the public address', async () => {
  const { internalUrl } = await start({ portal: { publicUrl: 'https://ops.example/parcel-relay/' } })
  const visitor = createVisitor(internalUrl)
  const answer = await visitor.post('/login', { ...ADMIN }, { origin: 'https://ops.example' })
  expect(answer.headers.get('set-cookie')).toMatch(/; Path=\/parcel-relay; HttpOnly; SameSite=Lax; Secure$/)
  expect(answer.headers.get('location')).toBe('/parcel-relay/')
  expect((await visitor.get('/webhooks')).text).toContain('href="/parcel-relay/webhooks/new"')
})

test('a bearer token is no session, and a session is no bearer token', async () => {
  const { internalUrl } = ofFile()
  const visitor = await loggedIn()
  const [name = '', session = ''] = [...visitor.jar.entries()][0] ?? []
  expect((await ask(internalUrl, session, '/relay/endpoints')).status).toBe(401)
  visitor.jar.set(name, await logIn(internalUrl, ADMIN))
  expect((await visitor.get('/webhooks')).status).toBe(401)
})

test('a user with the scope status sees parcels, but no webhooks or buttons', async () => {
  const visitor = await loggedIn(SHOP)
  expect((await visitor.get('/')).text).toContain('Overview')
  const parcels = await visitor.get('/parcels')
  expect(parcels.status).toBe(200)
  expect(parcels.text).not.toContain('/webhooks')
  for (const path of ['/carrier', '/settings', '/events', '/jobs', '/webhooks', '/webhooks/new', '/webhooks/1'])
    expect((await visitor.get(path)).status).toBe(403)
  for (const path of ['/parcels/1001/watch', '/webhooks/new', '/webhooks/1/remove']) expect((await visitor.post(path)).status).toBe(403)
})

test('the page of operator events links to the runbooks', async () => {
  expect((await (await loggedIn()).get('/events')).text).toContain('<a href="/docs/runbooks">Runbooks</a>')
})

test('a session ends with the reload that removes its app', async () => {
  const { internalUrl, reloadWith } = await start({})
  const visitor = await loggedIn(ADMIN, internalUrl)
  expect((await visitor.get('/webhooks')).status).toBe(200)
  await reloadWith({ apps: [] })
  expect((await visitor.get('/webhooks')).status).toBe(401)
})

test('a reload turns the portal off and on', async () => {
  const { internalUrl, reloadWith } = await start({ portal: { enabled: false } })
  const visitor = createVisitor(internalUrl)
  expect((await visitor.get('/login')).status).toBe(404)
  await reloadWith({ portal: { enabled: true } })
  expect((await visitor.get('/login')).status).toBe(200)
})

const FROM_ELSEWHERE: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['another site', { 'sec-fetch-site': 'cross-site' }],
  ['another port of this host', { 'sec-fetch-site': 'same-site' }],
  ['another origin, over plain http', { origin: 'http://elsewhere.example' }],
  ['a page without an origin', { origin: 'null' }],
  ['a sender without an origin header', {}],
]

test.each(FROM_ELSEWHERE)('W2: a form from %s is refused, even the login form', async (_from, headers) => {
  const visitor = await loggedIn()
  const before = withoutIds((await visitor.get('/webhooks')).text.replace(/As of.*/, ''))
  for (const path of ['/webhooks/new', '/logout', '/login', '/parcels/1001/watch'])
    expect((await visitor.post(path, { ...ADMIN, name: 'planted', url: 'http://127.0.0.1:9/' }, headers)).status).toBe(403)
  expect(withoutIds((await visitor.get('/webhooks')).text.replace(/As of.*/, ''))).toBe(before)
})

test('over plain http a form is accepted if its Origin is the requested host', async () => {
  const { internalUrl } = ofFile()
  const visitor = createVisitor(internalUrl)
  expect((await visitor.post('/login', { ...ADMIN }, { origin: internalUrl })).status).toBe(303)
})

test('a user named by a trusted proxy may read, and one in portal.admins may do everything', async () => {
  const { internalUrl } = await start({
    listen: { internal: { host: '127.0.0.1', port: 0, trustProxy: ['127.0.0.1'] } },
    portal: { trustedHeader: 'X-Forwarded-User', admins: ['anna'] },
  })
  const anna = createVisitor(internalUrl, { 'x-forwarded-user': 'anna' })
  const bob = createVisitor(internalUrl, { 'x-forwarded-user': 'bob' })
  expect([(await anna.get('/webhooks')).status, (await bob.get('/webhooks')).status, (await bob.get('/parcels')).status]).toEqual([
    200, 403, 200,
  ])
  const page = await anna.get('/webhooks')
  expect(page.text).toContain('anna')
  expect(page.text).not.toContain('Log out')
  expect((await createVisitor(internalUrl, { 'x-forwarded-user': ' ' }).get('/parcels')).status).toBe(403)
  // The API still requires a token.
  expect((await fetch(`${internalUrl}/relay/endpoints`, { headers: { 'x-forwarded-user': 'anna' } })).status).toBe(401)
})

test('without a trusted proxy the header is ignored, and a config that needs it is refused', async () => {
  const { internalUrl } = await start({})
  expect((await createVisitor(internalUrl, { 'x-forwarded-user': 'anna' }).get('/webhooks')).status).toBe(401)
  await expect(start({ portal: { trustedHeader: 'X-Forwarded-User' } })).rejects.toMatchObject({
    problems: [expect.stringContaining('needs listen.internal.trustProxy')],
  })
})

test('every page forbids foreign scripts and frames, and forbids caches to keep it', async () => {
  const visitor = await loggedIn()
  for (const path of ['/login', '/webhooks', '/webhooks/new', '/parcels', '/webhooks/999']) {
    const { headers } = await visitor.get(path)
    expect([headers.get('cache-control'), headers.get('x-content-type-options'), headers.get('referrer-policy')]).toEqual([
      'no-store',
      'nosniff',
      'same-origin',
    ])
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    )
  }
})

test('a mistake in a form is explained at its field, and the input except the key is kept', async () => {
  const visitor = await loggedIn()
  const answer = await visitor.post('/webhooks/new', { url: 'ftp://x', name: ' ', key: 'given', sharedKey: 'short-canary', rate: 'many' })
  expect(answer.status).toBe(400)
  expect(answer.text).toContain('Nothing was added. Correct 3 fields:')
  for (const name of ['name', 'sharedKey', 'rate']) expect(answer.text).toMatch(new RegExp(`id="${name}-error">[^<]+<`))
  expect(answer.text).toContain('value="ftp://x"')
  expect(answer.text).not.toContain('short-canary')
  expect((await visitor.post('/webhooks/new', { url: 'ftp://x', name: 'ftp' })).text).toContain('URL must begin with http:// or https://.')
  expect((await visitor.post('/webhooks/new', { url: 'http://127.0.0.1:9', name: '' })).text).toContain('Name must not be empty.')
})

test('a form that replaces a key is refused if the key was replaced after the page was loaded', async () => {
  const visitor = await loggedIn()
  await visitor.post('/webhooks/new', { url: 'http://127.0.0.1:9/hook', name: 'rotated' })
  const id = idOf((await visitor.get('/webhooks')).text, 'rotated')
  const keys = /name="keys" value="([^"]+)"/.exec((await visitor.get(`/webhooks/${id}`)).text)?.[1] ?? ''
  const first = await visitor.post(`/webhooks/${id}/key`, { keys })
  expect([first.status, first.text.match(/id="key">/)?.length]).toEqual([200, 1])
  // Somebody else has loaded the page before, and their form has an id of its own.
  const again = await visitor.post(`/webhooks/${id}/key`, { keys })
  expect([again.status, again.text.includes('<code id="key">')]).toEqual([409, false])
  await visitor.post(`/webhooks/${id}/remove`, { confirm: 'rotated' })
})

test('a webhook is removed only if its name is typed', async () => {
  const visitor = await loggedIn()
  await visitor.post('/webhooks/new', { url: 'http://127.0.0.1:9/hook', name: 'kept' })
  const id = idOf((await visitor.get('/webhooks')).text, 'kept')
  expect((await visitor.post(`/webhooks/${id}/remove`, { confirm: 'other' })).text).toContain('Type the name kept to confirm.')
  expect((await visitor.post(`/webhooks/${id}/remove`, { confirm: 'kept' })).headers.get('location')).toBe('/webhooks')
  expect((await visitor.get(`/webhooks/${id}`)).status).toBe(404)
})

test('a browser loads an asset again only after it has changed', async () => {
  const visitor = createVisitor(ofFile().internalUrl)
  const first = await visitor.get('/assets/portal.css')
  expect([first.status, first.headers.get('content-type')]).toEqual([200, 'text/css; charset=utf-8'])
  // Node's `fetch` hides a 304, so use `get`.
  const again = get(`${ofFile().internalUrl}/assets/portal.css`, { headers: { 'if-none-match': first.headers.get('etag') ?? '' } })
  const [{ statusCode }] = await once(again, 'response')
  expect(statusCode).toBe(304)
  for (const name of ['..%2Fhtml.ts', 'portal.ts', 'nothing.css']) expect((await visitor.get(`/assets/${name}`)).status).toBe(404)
})

test('the overview says that no push has come yet, and later shows each problem', async () => {
  await using receiver = await startWebhookReceiver()
  receiver.answer(() => 410)
  const { internalUrl, publicUrl } = await start({})
  const visitor = await loggedIn(ADMIN, internalUrl)
  expect((await visitor.get('/')).text).toMatch(/Ready: waiting for the first push[^<]*<\/h1>/)
  await visitor.post('/webhooks/new', { url: receiver.url, name: 'retired' })
  await push(publicUrl, pushBody({ trackingIds: ['1001'] }))
  await expect.poll(async () => (await visitor.get('/')).text).toContain('retired answered 410 Gone and is disabled')
  const { text } = await visitor.get('/')
  expect(text).toContain('1 problem</h1>')
  expect(text).toMatch(/1 event waits, the oldest for [^.]*\. None is lost\./)
  await expect.poll(async () => (await visitor.get('/')).text).toMatch(/<strong>retired<\/strong> answered 410 Gone and was disabled/)
  // The problem ends when an operator decides to keep the webhook disabled.
  const id = idOf((await visitor.get('/webhooks')).text, 'retired')
  expect((await visitor.get(`/webhooks/${id}`)).text).toContain('Disable retired')
  await visitor.post(`/webhooks/${id}/disable`)
  expect((await visitor.get('/')).text).toMatch(/(Everything works|No trouble seen)[^<]*<\/h1>/)
})

test('the carrier’s page shows what is known of pushes, answers and calls', async () => {
  const { text } = await (await loggedIn()).get('/carrier')
  for (const known of ['Pushes: the evidence', 'of today’s 50,000 calls are used', 'polls; works on jobs']) expect(text).toContain(known)
})

test('the pages of settings and of the audit trail show no secrets', async () => {
  const visitor = await loggedIn()
  await visitor.post('/webhooks/new', {
    url: 'http://127.0.0.1:9/hook?token=canary-in-url',
    name: 'audited',
    key: 'given',
    sharedKey: 'canary-shared-key-0123',
  })
  const { text } = await visitor.get('/settings')
  expect(text).toContain('<code>upstream.callsPerDay</code>')
  const audit = (await visitor.get('/audit')).text
  expect(audit).toMatch(/admin<\/a><\/td>.*webhook added.*audited.*127\.0\.0\.1/s)
  for (const secret of [SHARED_KEY, CARRIER_LOGIN.password, '$argon2id', 'canary']) expect(text + audit).not.toContain(secret)
  const found = await visitor.get('/settings?query=CALLSPER')
  expect(found.text).toContain('<code>upstream.callsPerDay</code>')
  expect(found.text).not.toContain('<code>upstream.baseUrl</code>')
  await visitor.post(`/webhooks/${idOf((await visitor.get('/webhooks')).text, 'audited')}/remove`, { confirm: 'audited' })
})

test('a saved webhook comes with a warning about each filter value that no event has had', async () => {
  const { internalUrl, publicUrl } = await start({})
  await push(publicUrl, pushBody({ trackingIds: ['1001'], detailedStatus: 'ArrivedT2', distributionType: 'Mailbox' }))
  const visitor = await loggedIn(ADMIN, internalUrl)
  const fields = { url: 'http://127.0.0.1:9/', name: 'shop', key: 'made', detailedStatus: 'ArivedT2', distributionType: 'Mailbox' }
  const added = await visitor.post('/webhooks/new', fields)
  const warning = 'No event has had the detailed status &quot;ArivedT2&quot; so far; did you mean ArrivedT2?'
  expect([added.status, added.text]).toEqual([201, expect.stringContaining(warning)])
  const id = idOf((await visitor.get('/webhooks')).text, 'shop')
  const saved = await visitor.post(`/webhooks/${id}/edit`, { ...fields, distributionType: 'Mailboxes' })
  expect(saved.text).toContain(warning)
  expect(saved.text).toContain('No event has had the kind of delivery &quot;Mailboxes&quot; so far; did you mean Mailbox?')
  expect(saved.text).toContain('value="Mailboxes"')
  const right = await visitor.post(`/webhooks/${id}/edit`, { ...fields, detailedStatus: 'ArrivedT2' })
  expect([right.status, right.headers.get('location')]).toEqual([303, `/webhooks/${id}`])
})
