import { describe, expect, test } from 'vitest'
import type { ParcelCursor } from '../../../src/core/domain/admin/parcel-list.ts'
import { listParcels } from '../../../src/core/store/admin/parcel-lists.ts'
import type { Session } from '../../../src/core/store/engine.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { loggedInAt } from '../../support/portal/portal-visitor.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { ADMIN, logIn } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { engines } from '../../support/store/engines.ts'
import { openErasures } from '../../support/store/erasures.ts'
import { changeStoredRows, storedRows } from '../../support/store/stored-rows.ts'

const PARCELS = 3000
const REFERENCE = 'BIG-1'
const named = (prefix: string, count: number) => Array.from({ length: count }, (_, nth) => `${prefix}${10_000 + nth}`)

describe.each(engines)('an order of 3,000 parcels on $name', (engine) => {
  async function openOrder() {
    const store = await openErasures(engine)
    const watch = (identifiers: readonly string[], reference = REFERENCE) =>
      store.writes.watchMany({ identifiers, orders: identifiers.map(() => ({ reference })), nowMs: store.now() })
    const [ours, others] = [named('AB', PARCELS), named('CD', PARCELS)]
    // Parcels of other orders stand between those of this one.
    for (let from = 0; from < PARCELS; from += 500) {
      await watch(ours.slice(from, from + 500))
      await watch(others.slice(from, from + 500), 'OTHER')
    }
    return { ...store, ours, watch }
  }

  test('8.2: its list has each parcel once while parcels are added and erased; a page reads what it shows', async () => {
    const { reads, ours, watch, forget } = await openOrder()
    let rows = 0
    const session: Session = {
      ...reads.session,
      all: async (statement, params) => {
        const found = await reads.session.all(statement, params)
        rows += found.length
        return found
      },
    }
    const listed: string[] = []
    const most = { page: 0, rows: 0 }
    let after: ParcelCursor | null = null
    for (let page = 0; page === 0 || after !== null; page++) {
      rows = 0
      const found: Awaited<ReturnType<typeof listParcels>> = await listParcels(session, {
        prefix: null,
        reference: REFERENCE,
        status: null,
        stopped: null,
        after,
        limit: 200,
      })
      Object.assign(most, { page, rows: Math.max(most.rows, rows) })
      listed.push(...found.parcels.flatMap(({ identifiers }) => identifiers.map(({ value }) => value)))
      after = found.next
      if (page % 4 !== 0) continue
      await watch([`NEW${1000 + page}`])
      // One that was listed, the last that was listed, which is the cursor, and one that is still to come.
      for (const gone of [ours[page * 100], listed.at(-1), ours[PARCELS - 1 - page]]) if (gone !== undefined) await forget(gone)
    }
    expect(new Set(listed).size).toBe(listed.length)
    const living = async (id: string) => (await reads.inspectParcel(id)) !== null
    const missing = ours.filter((id) => !listed.includes(id))
    expect(await Promise.all(missing.map(living))).toEqual(missing.map(() => false))
    expect(listed.filter((id) => id.startsWith('NEW'))).toEqual(['NEW1000', 'NEW1004', 'NEW1008', 'NEW1012'])
    expect(most.page).toBeGreaterThan(13)
    // For each parcel its place in the order, its state, its identifiers and its order.
    expect(most.rows).toBeLessThanOrEqual(4 * 200)
    const filter = { prefix: null, reference: REFERENCE, status: null, stopped: null }
    expect(await reads.countParcels(filter, 10_000)).toEqual({ count: PARCELS + 4 - 12, more: false })
    expect(await reads.countParcels(filter, 100)).toEqual({ count: 100, more: true })
  })

  test('8.2: a page is found in the index, in its order: nothing sorts the parcels of the order', async () => {
    const { path } = await openOrder()
    // A relay never analyzes SQLite, and PostgreSQL by itself.
    if (engine === postgres) await changeStoredRows(path, 'analyze')
    const page = `select parcel_id from order_context where reference = '${REFERENCE}' and parcel_id > 1000 order by parcel_id limit 200`
    const explain = engine === postgres ? 'explain' : 'explain query plan'
    const plan = JSON.stringify(await storedRows(path, `${explain} ${page}`))
    expect(plan).toMatch(/index/i)
    expect(plan).not.toMatch(/sort|b-tree for order/i)
  })
})

test('8.2: the API and the portal page through 3,000 parcels of an order that a list has named', async () => {
  const relay = await relayOfTest({ serve: { fetchUnknown: false } })
  const ids = named('AB', PARCELS)
  const authorization = `Bearer ${await logIn(relay.internalUrl, ADMIN)}`
  const body = ['trackingNumber,reference', ...ids.map((id) => `${id},${REFERENCE}`)].join('\n')
  const watched = await fetch(`${relay.internalUrl}/relay/parcels/watch`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'text/csv' },
    body,
  })
  expect([watched.status, await watched.json()]).toMatchObject([200, { watched: PARCELS, failed: 0 }])
  const operate = await operatorOf(relay)
  const listed: string[] = []
  for (let cursor = ''; ; ) {
    const page = Object((await operate('GET', `/relay/parcels?reference=${REFERENCE}&limit=500${cursor}`)).body)
    for (const { identifiers } of page.parcels) listed.push(identifiers[0])
    if (page.next === null) break
    cursor = `&cursor=${encodeURIComponent(page.next)}`
    expect((await operate('DELETE', `/relay/parcels/${listed.at(-1)}`)).status).toBe(200)
    expect((await operate('PUT', `/relay/parcels/NEW${listed.length}`, { reference: REFERENCE })).status).toBe(201)
  }
  expect(listed.filter((id) => !id.startsWith('NEW'))).toEqual(ids)
  expect(listed.filter((id) => id.startsWith('NEW'))).toEqual([500, 1000, 1500, 2000, 2500, 3000].map((nth) => `NEW${nth}`))

  const visitor = await loggedInAt(relay.internalUrl)
  const found = await visitor.get(`/parcels?query=${REFERENCE}`)
  expect(found.headers.get('location')).toBe(`/parcels?reference=${REFERENCE}`)
  const shown: string[] = []
  for (let path = found.headers.get('location') ?? ''; path !== ''; ) {
    const { text } = await visitor.get(path)
    shown.push(...[...text.matchAll(/<th scope="row"[^>]*><a href="\/parcels\/(\w+)"/g)].map(([, id = '']) => id))
    if (shown.length === 100) expect(text).toContain(`of the order ${REFERENCE}, the ones known longest first. 100 on this page.`)
    path = (/<p class="more"><a href="([^"]*)"/.exec(text)?.[1] ?? '').replaceAll('&amp;', '&')
  }
  expect(new Set(shown).size).toBe(shown.length)
  expect(shown).toHaveLength(PARCELS)
})
