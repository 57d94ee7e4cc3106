import { expect, test } from 'vitest'
import { pushBody } from '../support/builders.ts'
import { operatorOf } from '../support/manage.ts'
import { createVisitor } from '../support/portal-visitor.ts'
import { push } from '../support/relay.ts'
import { relayOfFile } from '../support/relay-of-file.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const ofFile = relayOfFile('http://127.0.0.1:9', { delivery: { allowNetworks: ['127.0.0.0/8'] } })

const NAUGHTY = [
  '<script>alert(1)</script>',
  '</title><script src=//evil.example></script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)",
  '" autofocus onfocus="alert(1)',
  '</pre></td><iframe srcdoc="<script>alert(1)</script>">',
  '<svg/onload=alert(1)>',
  '<a href="javascript:alert(1)">x</a>',
  '--><!--<b>',
  '<![CDATA[<i>]]>',
  '</textarea></select></style><style>*{display:none}</style>',
  '&lt;b&gt;&amp;&#60;&#x3c;u>',
  'line\u2028separated\u2029<b>',
  '\u202egnp.evil\u2066<b>\u200b',
  `${'W'.repeat(60)}<b>`,
  '{{7*7}}<%= 7 %>',
  '\u{feff}<b>Ω≈ç√∫ 田中さん 👩‍👩‍👧 \u{e0001}',
  "Robert'); DROP TABLE push;--<b>",
]

/** As a page must hold it. */
const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;').replaceAll("'", '&#39;')

/** A tag as pages write it: attributes are in quotes, or have no value. */
const TAG = /^<(?:!doctype html|\/?([a-z][a-z0-9]*)((?: [a-z][a-z-]*(?:="[^"<>]*")?)*) ?\/?)>/i
const ELEMENTS = new Set(
  `a article aside b body br button circle code dd defs details div dl dt em fieldset figure figcaption form g h1 h2 h3 head header hr html i input label
  legend li line link main meta nav ol option p path pre rect s script section select small span strong summary svg symbol table tbody td text textarea tfoot th
  thead time title tr ul use wbr`.split(/\s+/),
)

/** What in a page is no tag of the portal's own. */
function foreignIn(page: string): readonly string[] {
  return [...page.matchAll(/</g)].flatMap(({ index }) => {
    const [tag, element = 'html', attributes = ''] = TAG.exec(page.slice(index)) ?? []
    if (tag === undefined || !ELEMENTS.has(element.toLowerCase())) return [page.slice(index, index + 80)]
    const isForeign =
      / (?:on\w+|style|srcdoc|formaction)\b/i.test(attributes.replaceAll(/="[^"]*"/g, '')) ||
      / (?:href|src|action)="(?![/#"])/.test(attributes)
    const isScript = element === 'script' && !tag.startsWith('</') && !/ src="\/assets\/portal\.js"/.test(tag)
    return isForeign || isScript ? [tag] : []
  })
}

/** Every page that links lead to from the first one. A download is none. */
async function crawl(visitor: ReturnType<typeof createVisitor>): Promise<ReadonlyMap<string, string>> {
  const pages = new Map<string, string>()
  const waiting = ['/', '/inbox?state=all', '/login', '/webhooks/new']
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (pages.has(path)) continue
    const answer = await visitor.get(path)
    if (!(answer.headers.get('content-type') ?? '').startsWith('text/html')) continue
    pages.set(path, answer.text)
    for (const [, to = ''] of answer.text.matchAll(/ href="(\/[^"#]*)/g))
      if (!/^\/assets\/|\/body$/.test(to)) waiting.push(to.replaceAll('&amp;', '&'))
  }
  return pages
}

test('W1: markup in what was pushed, answered or typed is shown as text on every page', async () => {
  await using receiver = await startWebhookReceiver()
  receiver.answer((nth) => ({ status: nth % 2 === 0 ? 200 : 422, body: NAUGHTY[nth % NAUGHTY.length] ?? '' }))
  const { internalUrl, publicUrl } = ofFile()
  const operator = await operatorOf({ internalUrl })
  const names = NAUGHTY.map((text) => text.trim())
  for (const name of names) {
    const answer = await operator('POST', '/relay/endpoints', { name, url: `${receiver.url}?q=${encodeURIComponent(name)}` })
    expect([name, answer.status]).toEqual([name, 201])
  }
  for (const [nth, text] of NAUGHTY.entries()) {
    const texts = { en: text, sv: text }
    const fields = { status: text, detailedStatus: text, location: text, distributionType: text, texts, trackingIds: [`NAUGHTY${nth}`] }
    expect((await push(publicUrl, pushBody(fields))).status).toBe(200)
    // In quarantine, as text that is no JSON.
    expect((await push(publicUrl, text, { 'content-encoding': `${nth}"<b>` })).status).toBe(200)
  }
  await expect.poll(() => receiver.pushes.length).toBeGreaterThanOrEqual(NAUGHTY.length ** 2)
  const visitor = createVisitor(internalUrl)
  await visitor.logIn()
  const pages = new Map(await crawl(visitor))
  const { endpoints } = (await operator('GET', '/relay/endpoints')).body
  const ids = (Array.isArray(endpoints) ? endpoints : []).map(({ id }) => String(id))
  for (const id of ids) pages.set(`test ${id}`, (await visitor.post(`/webhooks/${id}/test`)).text)
  for (const text of NAUGHTY) {
    const query = new URLSearchParams({
      query: text,
      parcel: text,
      state: text,
      from: text,
      to: text,
      endpoint: text,
      status: text,
      cursor: '',
    })
    for (const path of ['/parcels', '/deliveries', '/inbox', '/webhooks'])
      pages.set(`${path} ${text}`, (await visitor.get(`${path}?${query.toString()}`)).text)
    const wrong = {
      of: text,
      to: text,
      state: text,
      since: text,
      do: 'count',
      username: text,
      password: text,
      name: text,
      url: text,
      rate: text,
      schedule: text,
    }
    for (const path of ['/deliveries', '/login', '/webhooks/new', `/webhooks/${ids[0]}/remove`])
      pages.set(`post ${path} ${text}`, (await visitor.post(path, wrong)).text)
  }
  expect([...pages].flatMap(([path, page]) => foreignIn(page).map((foreign) => `${path}: ${foreign}`))).toEqual([])
  // They were there to be seen.
  const all = [...pages.values()].join('\n')
  for (const name of names.filter((text) => !text.includes('\u202e'))) expect(all.split(escaped(name)).length).toBeGreaterThan(20)
  expect([...pages.keys()].filter((path) => /^\/deliveries\/\d+$/.test(path)).length).toBeGreaterThan(50)
})
