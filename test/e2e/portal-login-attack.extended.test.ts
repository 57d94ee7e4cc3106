import { expect, test } from 'vitest'
import { foreignIn } from '../support/portal/portal-pages.ts'
import { createVisitor } from '../support/portal/portal-visitor.ts'
import { formIn } from '../support/portal/sent-form.ts'
import { ADMIN } from '../support/relay/relay.ts'
import { relayOfFile } from '../support/relay/relay-of-file.ts'

const ofFile = relayOfFile('http://127.0.0.1:9', { limits: { failuresPerMinute: 1_000_000 } })

const ODD_ADDRESSES = [
  '//[',
  'http://[::1',
  '//',
  '\\\\',
  '/%',
  '/webhooks/%ff',
  '\u0000',
  '/deliveries?x=%',
  `/deliveries?parcel=${'x'.repeat(200_000)}`,
  `/${'x'.repeat(5000)}`,
]
const ODD_KEPT = [
  '{}',
  'null',
  '[',
  '[1,null,["a"],["b",1],["c",[1,null]]]',
  '[["__proto__",["x"]],["constructor",["y"]]]',
  `${'['.repeat(50_000)}`,
  JSON.stringify(Array.from({ length: 5000 }, (_, nth) => [`f${nth}`, []])),
  JSON.stringify([['identifiers', ['x'.repeat(200_000)]]]),
  JSON.stringify([['identifiers', ['\u0000\u202e<script>alert(1)</script>']]]),
]

const unescaped = (fields: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      value.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&#39;', "'").replaceAll('&amp;', '&'),
    ]),
  )

test('a login with an odd address or odd kept fields leads on, right password or wrong', async () => {
  const { internalUrl } = ofFile()
  const wrong = createVisitor(internalUrl)
  for (const fields of [...ODD_ADDRESSES.map((asked) => ({ asked, kept: '' })), ...ODD_KEPT.map((kept) => ({ asked: '/parcels', kept }))]) {
    const name = JSON.stringify(fields).slice(0, 100)
    const refused = await wrong.post('/login', { ...fields, username: 'admin', password: 'wrong' })
    expect([name, refused.status, foreignIn(refused.text)]).toEqual([name, 401, []])
    const visitor = createVisitor(internalUrl)
    const { status, text, headers } = await visitor.post('/login', { ...ADMIN, ...fields })
    expect([name, [200, 303].includes(status), foreignIn(text)]).toEqual([name, true, []])
    expect([name, (headers.get('location') ?? '').length < 5000]).toEqual([name, true])
    expect([name, (await visitor.get('/')).status]).toEqual([name, 200])
  }
})

test('the login says that a form was too long to keep, and leads to its page', async () => {
  const { internalUrl } = ofFile()
  for (const [path, fields] of [['/parcels', { identifiers: 'AB1001\n'.repeat(20_000) }]] as const) {
    const visitor = createVisitor(internalUrl)
    const asked = await visitor.post(path, fields)
    expect([asked.status, asked.text.includes('What you sent was too long to keep, or could not be read.')]).toEqual([401, true])
    expect(asked.text.length).toBeLessThan(10_000)
    expect((await visitor.post('/login', { ...formIn(asked.text, '/login'), ...ADMIN })).headers.get('location')).toBe(path)
  }
})

test('a login that carries a form is never too long to be sent, whatever the form contains', async () => {
  const { internalUrl } = ofFile()
  for (const one of ['"', '\\', '\u0001', 'å', '\n', '😀']) {
    const visitor = createVisitor(internalUrl)
    const body = new FormData()
    body.set('identifiers', one.repeat(Math.floor(60_000 / Buffer.byteLength(one))))
    const asked = await visitor.post('/parcels', body)
    expect([one, asked.status]).toEqual([one, 401])
    const login = { ...unescaped(formIn(asked.text, '/login')), ...ADMIN }
    expect([one, [200, 303].includes((await visitor.post('/login', login)).status)]).toEqual([one, true])
  }
})

test('a flood of logins with long kept forms is refused, and never with a 500', async () => {
  const { internalUrl } = ofFile()
  const kept = JSON.stringify([['identifiers', ['x'.repeat(180_000)]]])
  const attack = () => createVisitor(internalUrl).post('/login', { username: 'admin', password: 'wrong', asked: '/parcels', kept })
  const answers = await Promise.all(Array.from({ length: 80 }, attack))
  expect(answers.map(({ status }) => status).filter((status) => status !== 401 && status !== 429)).toEqual([])
  expect((await createVisitor(internalUrl).logIn()).status).toBe(303)
})
