import { beforeAll, expect, test } from 'vitest'
import { type createVisitor, loggedInAt } from '../../support/portal/portal-visitor.ts'
import { ADMIN, logIn, SHOP } from '../../support/relay/relay.ts'
import { relayOfFile } from '../../support/relay/relay-of-file.ts'
import { NO_CARRIER } from '../../support/runner/constants.ts'

const relay = relayOfFile(NO_CARRIER, { serve: { fetchUnknown: false } })
let visitor: ReturnType<typeof createVisitor>
let admin = ''
beforeAll(async () => {
  visitor = await loggedInAt(relay().internalUrl)
  admin = await logIn(relay().internalUrl, ADMIN)
})

async function say(identifier: string, order: unknown): Promise<void> {
  const headers = { authorization: `Bearer ${admin}`, 'content-type': 'application/json' }
  const init = { method: 'PUT', headers, body: JSON.stringify(order) }
  expect((await fetch(`${relay().internalUrl}/relay/parcels/${identifier}`, init)).ok).toBe(true)
}

/** The section "Order" of a page, without what stands before and after it. */
const sectionOf = (page: string) => /<section aria-labelledby="order">(.*?)<\/section>/s.exec(page)?.[1] ?? ''
const textOf = (markup: string) =>
  markup
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()

test('the page of a parcel shows the order before the history, to readers too', async () => {
  await say('PG1001', { reference: 'ORDER-1207', labels: { shop: 'north', priority: 'high' }, note: 'A gift' })
  const { text } = await visitor.get('/parcels/PG1001')
  expect(textOf(sectionOf(text))).toContain('Order Reference ORDER-1207 Labels priority high shop north Note A gift')
  expect(text.indexOf('id="order"')).toBeLessThan(text.indexOf('Views of this parcel'))
  const reader = await loggedInAt(relay().internalUrl, SHOP)
  expect(textOf(sectionOf((await reader.get('/parcels/PG1001')).text))).toContain('ORDER-1207')
})

test('a parcel without an order says so', async () => {
  await say('PG1002', {})
  expect(textOf(sectionOf((await visitor.get('/parcels/PG1002')).text))).toContain('Nobody has said to which order it belongs.')
})
