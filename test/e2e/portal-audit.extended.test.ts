import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { escaped, foreignIn } from '../support/portal/portal-pages.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'

/** Starts a relay whose audit trail has orders about all kinds of things. */
async function start() {
  const receiver = await receiverOfTest()
  receiver.answer(() => 422)
  const relay = await relayOfTest({ delivery: { allowNetworks: ['127.0.0.0/8'] } })
  const operate = await operatorOf(relay)
  const visitor = await loggedInAt(relay.internalUrl)
  const { id } = (await operate('POST', '/relay/endpoints', { name: 'shop', url: receiver.url })).body as { readonly id: string }
  await push(relay.publicUrl, pushBody({ trackingIds: ['AB1001', 'AB1002'] }))
  await push(relay.publicUrl, 'no JSON')
  await expect.poll(() => receiver.pushes.length).toBeGreaterThan(0)
  const { deliveries } = (await operate('GET', '/relay/deliveries')).body as { readonly deliveries: readonly { readonly id: string }[] }
  const delivery = deliveries[0]?.id ?? ''
  for (const path of [`/relay/endpoints/${id}/test`, `/relay/deliveries/${delivery}/retry`, '/relay/inbox/2/dismiss', '/relay/rebuild'])
    await operate('POST', path)
  await operate('PUT', '/relay/parcels/AB1001/watch')
  await operate('DELETE', '/relay/parcels/AB1002/watch')
  await operate('PUT', '/relay/parcels/CD2001/watch')
  await operate('DELETE', '/relay/parcels/CD2001')
  await visitor.post('/settings/rotate-tokens')
  /** Lists what the rows of a page are about, as the links or words in their column. */
  const rowsOf = (page: string) =>
    [...page.matchAll(/<td role="cell" data-l="What">([^<]*).*?<td role="cell" data-l="About">(.*?)<\/td>/gs)].map(
      ([, what = '', about = '']) => [what.trim(), / href="([^"]*)"/.exec(about)?.[1] ?? about] as const,
    )
  const audit = async (query: string) => {
    const { status, text } = await visitor.get(`/audit${query}`)
    return { status, text, rows: rowsOf(text) }
  }
  return { ...relay, operate, visitor, audit, id, delivery }
}

test('the audit page lists every order, and each leads to what it is about', async () => {
  const { audit, id, delivery, visitor } = await start()
  const { rows, text } = await audit('')
  expect(rows).toEqual([
    ['secrets token key replaced', '/settings#keys'],
    ['parcels erased', ''],
    ['parcel watched', 'parcel (erased)'],
    ['parcel unwatched', '/parcels/AB1002'],
    ['parcel watched', '/parcels/AB1001'],
    ['store rebuild started', '/jobs'],
    ['push dismissed', '/inbox/2'],
    ['delivery retried', `/deliveries/${delivery}`],
    ['webhook tested', `/webhooks/${id}`],
    ['webhook added', `/webhooks/${id}`],
  ])
  for (const [, to] of rows.filter(([, about]) => about.startsWith('/'))) expect([to, (await visitor.get(to)).status]).toEqual([to, 200])
  expect(text).toMatch(/aria-label="Where you are"><a href="\/settings">Settings<\/a>/)
  expect((await visitor.get('/settings')).text).toContain('href="/audit"')
  expect((await visitor.get(`/webhooks/${id}`)).text).toContain(`href="/audit?about=endpoint&amp;id=${id}"`)
})

test('what no longer exists is named on the audit page, but no link leads to it', async () => {
  const { audit, operate, id } = await start()
  await operate('DELETE', `/relay/endpoints/${id}`)
  const { rows } = await audit('')
  expect(rows.filter(([what]) => what.startsWith('webhook'))).toEqual([
    ['webhook removed', 'webhook shop'],
    ['webhook tested', 'webhook shop'],
    ['webhook added', 'webhook shop'],
  ])
  expect((await audit(`?about=endpoint&id=${id}`)).rows).toHaveLength(3)
})

test('the audit page and the API list the same for every filter', async () => {
  const { audit, operate, id, delivery } = await start()
  const soon = new Date(Date.now() + 3_600_000).toISOString()
  const filters = [
    ['?by=admin', '?by=admin', 10],
    ['?by=nobody', '?by=nobody', 0],
    ['?action=parcel.watched', '?action=parcel.watched', 2],
    ['?about=parcel&id=ab+1001', '?target=parcel:AB1001', 2],
    ['?about=parcel&id=CD2001', '?target=parcel:CD2001', 0],
    ['?about=endpoint&id=shop', `?target=endpoint:${id}`, 2],
    [`?about=delivery&id=${delivery}`, `?target=delivery:${delivery}`, 1],
    ['?about=push&id=2&action=push.dismissed&by=admin', '?target=push:2&action=push.dismissed&by=admin', 1],
    [`?from=${soon.slice(0, 16)}`, `?from=${soon.slice(0, 16)}:00Z`, 0],
    [`?to=${soon.slice(0, 16)}`, `?to=${soon.slice(0, 16)}:00Z`, 10],
  ] as const
  for (const [onPage, onApi, count] of filters) {
    const { actions } = (await operate('GET', `/relay/audit${onApi}`)).body as { readonly actions: readonly unknown[] }
    expect([onPage, (await audit(onPage)).rows.length, actions.length]).toEqual([onPage, count, count])
  }
})

test('the audit page is read page by page, with the filter kept, while orders are given', async () => {
  const { audit, operate } = await start()
  for (let nth = 0; nth < 120; nth++) await operate('PUT', '/relay/parcels/AB1001/watch')
  const seen: string[] = []
  let query = '?by=admin&action=parcel.watched'
  for (let pages = 0; query !== ''; pages++) {
    const { text, rows } = await audit(query)
    expect(rows.length).toBeLessThanOrEqual(100)
    seen.push(...rows.map(([, about]) => about))
    await operate('PUT', '/relay/parcels/AB1002/watch')
    const older = /<a href="\/audit(\?[^"]*)">Older<\/a>/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''
    if (older !== '') expect(older).toMatch(/^\?by=admin&action=parcel\.watched&cursor=/)
    query = older
    expect(pages).toBeLessThan(5)
  }
  expect(seen).toEqual([...Array.from({ length: 120 }, () => '/parcels/AB1001'), 'parcel (erased)', '/parcels/AB1001'])
})

const ODD = [
  'x'.repeat(4000),
  '\u0000\u0001\u001f\u007f\u202e',
  "' or 1=1; drop table operator_action; --",
  '<script>alert(1)</script>',
  '%00%ff',
  '2026-13-45T99:99',
  '9999999999999999',
  '-1.5',
  '99999999999999999999.1',
  'parcel:AB1001',
  'constructor',
  '\ud800',
]

test.each(['by', 'action', 'about', 'id', 'from', 'to', 'cursor'])(
  'odd text as %s of the audit trail is answered, never with a 500',
  async (name) => {
    const { audit, operate, visitor } = await start()
    for (const text of ODD) {
      for (const others of ['', 'about=endpoint&', 'by=admin&action=parcel.watched&about=parcel&id=AB1001&'].filter(
        (one) => !one.includes(`${name}=`),
      )) {
        const query = `?${others}${new URLSearchParams({ ...(name === 'about' ? { id: '1' } : {}), [name]: text }).toString()}`
        const { status, text: page } = await audit(query)
        expect([query.slice(0, 200), [200, 400, 404].includes(status), foreignIn(page)]).toEqual([query.slice(0, 200), true, []])
        if (status === 400) expect(page).toMatch(/role="alert"/)
        if (status !== 404 && text.length < 100 && /^[ -~]+$/.test(text) && (name === 'by' || name === 'id'))
          expect(page).toContain(`value="${escaped(text)}"`)
      }
      const asked =
        name === 'about'
          ? `target=${encodeURIComponent(text.toWellFormed())}:1`
          : `${name === 'id' ? 'target=endpoint:' : `${name}=`}${encodeURIComponent(text.toWellFormed())}`
      const { status } = await operate('GET', `/relay/audit?${asked}`)
      expect([asked.slice(0, 200), [200, 400].includes(status)]).toEqual([asked.slice(0, 200), true])
    }
    expect((await visitor.get('/audit?from=2026-01-02T00:00&to=2026-01-01T00:00')).status).toBe(400)
  },
)

test('the page of a parcel says who ordered the list that began its watch', async () => {
  const { visitor } = await start()
  // The list is watched in two transactions.
  const ids = Array.from({ length: 600 }, (_, nth) => `EF${3000 + nth}`)
  expect((await visitor.post('/parcels', { identifiers: ids.join('\n') })).status).toBe(200)
  for (const id of [ids[0], ids[599]]) expect((await visitor.get(`/parcels/${id}`)).text).toMatch(/by admin since/)
})

test('an instant in the details of an order is shown in the zone of the page', async () => {
  const { operate, audit, id, delivery } = await start()
  await operate('POST', `/relay/deliveries/${delivery}/skip`)
  const replayed = async () => {
    await operate('POST', `/relay/endpoints/${id}/replay`, { since: '2026-01-01T00:00:00Z' })
    return (await audit('?action=deliveries.replayed')).text
  }
  await expect.poll(replayed).toContain('from: <time datetime="2026-01-01T00:00:00.000Z" data-f="full"')
})
