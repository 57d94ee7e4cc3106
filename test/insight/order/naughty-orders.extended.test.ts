import { expect, test } from 'vitest'
import { type OrderContext, orderContextSchema } from '../../../src/core/domain/history/order-context.ts'
import { pushBody } from '../../support/history/builders.ts'
import { receiverOfTest } from '../../support/network/webhook-receiver.ts'
import { NAUGHTY_STRINGS } from '../../support/portal/naughty-strings.ts'
import { crawl, foreignIn } from '../../support/portal/portal-pages.ts'
import { loggedInAt } from '../../support/portal/portal-visitor.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { ADMIN, logIn, push } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { commandsOf } from '../../support/relay/run-command.ts'

const LABELS = 16

/** The naughty strings that an order can hold, as it holds them. */
const TEXTS = NAUGHTY_STRINGS.flatMap((text) => {
  const { data } = orderContextSchema.safeParse({ reference: text })
  return data === undefined || data.reference === null ? [] : [data.reference]
})

interface NaughtyParcel {
  readonly id: string
  readonly order: OrderContext
}

/** Parcels whose references, labels and notes are all these strings. */
const PARCELS: readonly NaughtyParcel[] = Array.from({ length: Math.ceil(TEXTS.length / LABELS) }, (_, nth) => {
  const texts = TEXTS.slice(nth * LABELS, (nth + 1) * LABELS)
  const labels = Object.fromEntries(texts.map((text, at) => [`l${String(at + 10)}`, text]))
  return { id: `NAUGHTY${1000 + nth}`, order: { reference: texts[nth % texts.length] ?? null, labels, note: texts.join('\n') } }
})

async function start() {
  const relay = await relayOfTest({ delivery: { allowNetworks: ['127.0.0.0/8'] } })
  const admin = await logIn(relay.internalUrl, ADMIN)
  return {
    ...relay,
    operate: await operatorOf(relay),
    visitor: await loggedInAt(relay.internalUrl),
    watch: async (list: string, type: string) => {
      const headers = { authorization: `Bearer ${admin}`, 'content-type': type }
      return await (await fetch(`${relay.internalUrl}/relay/parcels/watch`, { method: 'POST', headers, body: list })).json()
    },
  }
}

type Started = Awaited<ReturnType<typeof start>>

const orderAt = async ({ operate }: Started, id: string) => (await operate('GET', `/relay/parcels/${id}`)).body.order

test('there are hundreds of naughty strings for orders', () => {
  expect(TEXTS.length).toBeGreaterThan(300)
})

test('by API, form, CSV and NDJSON the same is stored, character for character', async () => {
  const started = await start()
  const { operate, visitor, watch } = started
  for (const { id, order } of PARCELS) {
    await operate('PUT', `/relay/parcels/${id}`, order)
    expect(await orderAt(started, id)).toEqual(order)
    const path = `/parcels/${id}/order`
    // What the page fills into its form saves the same again.
    const fields = {
      reference: order.reference ?? '',
      labels: Object.entries(order.labels)
        .map(([name, value]) => `${name}=${value}`)
        .join('\r\n'),
      note: order.note?.replaceAll('\n', '\r\n') ?? '',
    }
    await operate('PUT', `/relay/parcels/${id}`, {})
    expect((await visitor.post(path, fields)).status).toBe(303)
    expect(await orderAt(started, id)).toEqual(order)
  }
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
  const names = Object.keys(PARCELS[0]?.order.labels ?? {})
  const line = (cells: readonly string[]) => cells.map(quoted).join(',')
  const csv = [
    line(['identifier', 'reference', ...names.map((name) => `label:${name}`)]),
    ...PARCELS.map(({ id, order }) => line([`C${id}`, order.reference ?? '', ...names.map((name) => order.labels[name] ?? '')])),
  ]
  expect(await watch(csv.join('\n'), 'text/csv')).toMatchObject({ failed: 0, errors: [] })
  const json = PARCELS.map(({ id, order }) => JSON.stringify({ identifier: `N${id}`, ...order }))
  expect(await watch(json.join('\n'), 'application/x-ndjson')).toMatchObject({ failed: 0, errors: [] })
  for (const { id, order } of PARCELS) {
    expect(await orderAt(started, `N${id}`)).toEqual(order)
    expect(await orderAt(started, `C${id}`)).toEqual({ ...order, note: null })
  }
})

test('every page shows it as text, the search finds it, and commands print no control characters', async () => {
  const started = await start()
  const { operate, visitor } = started
  for (const { id, order } of PARCELS) {
    await operate('PUT', `/relay/parcels/${id}`, order)
    await operate('PUT', `/relay/parcels/TWIN${id}`, { reference: order.reference })
  }
  const pages = await crawl(visitor)
  expect([...pages].flatMap(([path, page]) => foreignIn(page).map((foreign) => `${path}: ${foreign}`))).toEqual([])
  const paths = [...pages.keys()]
  for (const { id, order } of PARCELS) {
    expect(paths).toContain(`/parcels/${id}`)
    const { status, headers } = await visitor.get(`/parcels?query=${encodeURIComponent(order.reference ?? '')}`)
    const location = new URL(headers.get('location') ?? '', 'http://x')
    expect([order.reference, status, location.searchParams.get('reference')]).toEqual([order.reference, 303, order.reference])
    const listed = (await visitor.get(location.pathname + location.search)).text
    expect([order.reference, listed.includes(`/parcels/${id}"`), listed.includes(`/parcels/TWIN${id}"`)]).toEqual([
      order.reference,
      true,
      true,
    ])
    const answer = await operate('GET', `/relay/parcels?reference=${encodeURIComponent(order.reference ?? '')}`)
    expect(answer.body.parcels).toHaveLength(2)
  }
  const run = commandsOf(started)
  for (const { id } of PARCELS.slice(0, 3))
    expect((await run('history', id)).stdout).not.toMatch(/(?!\n)\p{Cc}|[\u202a-\u202e\u2066-\u2069]/u)
  expect((await run('parcels', '--limit', '100')).stdout).not.toMatch(/(?!\n)\p{Cc}|[\u202a-\u202e\u2066-\u2069]/u)
})

test('8.6: headers carry each value percent-encoded, or name it as left out', async () => {
  const receiver = await receiverOfTest()
  const { operate, publicUrl } = await start()
  await operate('POST', '/relay/endpoints', { name: 'till', url: receiver.url })
  for (const { id, order } of PARCELS) {
    await operate('PUT', `/relay/parcels/${id}`, order)
    await push(publicUrl, pushBody({ trackingIds: [id] }))
  }
  await expect.poll(() => receiver.pushes.length, { timeout: 120_000 }).toBe(PARCELS.length)
  const orders = new Map(PARCELS.map(({ id, order }) => [id, order]))
  for (const { body, headers } of receiver.pushes) {
    const { trackingIds } = Object(JSON.parse(body.toString()))
    const { reference, labels } = orders.get(trackingIds[0]) ?? expect.fail('another parcel')
    const omitted = new Set((headers['relay-omitted'] ?? '').split(', '))
    const sent = [
      ['relay-reference', reference ?? ''] as const,
      ...Object.entries(labels).map(([name, value]) => [`relay-label-${name}`, value] as const),
    ]
    for (const [name, value] of sent) {
      const header = headers[name] ?? null
      expect([name, header === null ? omitted.has(name) : decodeURIComponent(header) === value]).toEqual([name, true])
      expect(header ?? '').toMatch(/^[\x21-\x7e]{0,200}$/)
    }
  }
})
