import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { closeOpened, openCarrier } from '../core/carrier/carrier-double.ts'
import { pushBody } from '../support/history/builders.ts'
import { apiDocument, fetchDocumented, operations, type Schema, schemaAt } from '../support/portal/api-document.ts'
import { ADMIN, logIn, push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { byForm } from '../support/runner/long-form.ts'

afterAll(closeOpened)

const text = fc.string({ unit: 'grapheme', maxLength: 20 })
/** A URL drops the path segments "", "." and "..", so do not make them. */
const part = text.filter((each) => !/^\.{0,2}$/.test(each))
const NAMES = ['1', '2', '999', 'AB123456789SE', '370000000000000001']
/** The waits are short or invalid, to keep the test fast. */
const SHORT = fc.constantFrom('0s', '1ms', '51s', 'soon')

/** Makes values that have the shape of the schema but may exceed its bounds. */
function valuesOf(schema: Schema): fc.Arbitrary<unknown> {
  const { $ref, enum: given, const: only, anyOf, oneOf, type, properties, items } = schema
  if ($ref !== undefined) return valuesOf(schemaAt($ref))
  if (only !== undefined) return fc.constant(only)
  if (given !== undefined) return fc.constantFrom(...given)
  const choices = anyOf ?? oneOf
  if (choices !== undefined) return fc.oneof(...choices.map(valuesOf))
  const kinds = [type ?? 'string'].flat().map((kind): fc.Arbitrary<unknown> => {
    if (kind === 'null') return fc.constant(null)
    if (kind === 'boolean') return fc.boolean()
    if (kind === 'integer') return fc.oneof(fc.nat({ max: 600 }), fc.maxSafeInteger())
    if (kind === 'number') return fc.oneof(fc.nat({ max: 100 }), fc.double({ noNaN: true, noDefaultInfinity: true }))
    if (kind === 'array') return fc.array(items === undefined ? fc.jsonValue() : valuesOf(items), { maxLength: 3 })
    if (kind === 'object') {
      return fc.record(Object.fromEntries(Object.entries(properties ?? {}).map(([name, each]) => [name, valuesOf(each)])), {
        requiredKeys: [],
      })
    }
    return fc.oneof(text, fc.constantFrom(...NAMES, 'http://127.0.0.1:9/', '30s', '2026-03-01T10:00:00Z'))
  })
  return fc.oneof(...kinds)
}

const requests = fc.constantFrom(...operations).chain(({ method, path, operation: { parameters, requestBody } }) => {
  const inPath = parameters.filter((each) => each.in === 'path')
  const inQuery = parameters.filter((each) => each.in === 'query')
  const [media] = Object.entries(requestBody?.content ?? {})
  return fc.record({
    method: fc.constant(method.toUpperCase()),
    path: fc
      .tuple(...inPath.map(() => fc.oneof(fc.constantFrom(...NAMES), part)))
      .map((values) => inPath.reduce((filled, { name }, at) => filled.replace(`{${name}}`, encodeURIComponent(values[at] ?? '')), path)),
    query: fc.record(
      Object.fromEntries([
        ...inQuery.map(
          ({ name, schema }) => [name, name === 'wait' ? SHORT : fc.oneof({ weight: 4, arbitrary: valuesOf(schema) }, text)] as const,
        ),
        ['bogus', text] as const,
      ]),
      { requiredKeys: [] },
    ),
    type: fc.constant(media?.[0] ?? null),
    body:
      media === undefined ? fc.constant(null) : fc.oneof({ weight: 4, arbitrary: valuesOf(media[1].schema).map(asText) }, fc.json(), text),
    who: fc.constantFrom('admin', 'admin', 'admin', 'nobody'),
  })
})

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

test('no request that follows the API document, or almost does, gets a 500 or a 503', async () => {
  const carrier = await openCarrier()
  const sections = {
    poll: { cron: '0 0 1 1 *' },
    delivery: { allowNetworks: ['127.0.0.0/8'] },
    limits: { failuresPerMinute: 1_000_000, unknownPerMinute: 1_000_000 },
  }
  const relay = await relayOfTest(sections, { carrierUrl: carrier.url })
  await push(relay.publicUrl, pushBody({ trackingIds: ['AB123456789SE'] }))
  await push(relay.publicUrl, 'no event')
  let token = await logIn(relay.internalUrl, ADMIN)
  const statuses = new Map<number, number>()
  await fc.assert(
    fc.asyncProperty(requests, async ({ method, path, query, type, body, who }) => {
      const isPublic = path.startsWith('/webhooks')
      const parameters = new URLSearchParams(Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)])))
      const answer = await fetchDocumented(`${isPublic ? relay.publicUrl : relay.internalUrl}${path}?${parameters.toString()}`, {
        method,
        headers: { ...(who === 'nobody' ? {} : { authorization: `Bearer ${token}` }), ...(type === null ? {} : { 'content-type': type }) },
        body,
      })
      // One of the requests makes all tokens invalid.
      if (answer.status === 401 && who === 'admin' && !isPublic) token = await logIn(relay.internalUrl, ADMIN)
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      expect(answer.status).not.toBe(500)
      // Neither the store nor the carrier fails in this test.
      expect(answer.status).not.toBe(503)
    }),
    { numRuns: byForm(1000, 20_000), endOnFailure: true },
  )
  expect(Object.keys(apiDocument.paths).length).toBeGreaterThan(25)
  expect([...statuses.keys()]).toEqual(expect.arrayContaining([200, 400, 401, 404]))
  expect(relay.lines.filter(({ level }) => level === 'error')).toEqual([])
})
