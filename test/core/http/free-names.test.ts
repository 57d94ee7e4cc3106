import { expect, test } from 'vitest'
import { z } from 'zod'
import { createWatchLineReader } from '../../../src/core/domain/admin/parcel-list.ts'
import { parseEndpointChange, parseNewEndpoint } from '../../../src/core/domain/delivery/endpoint-settings.ts'
import { parseOrderContext } from '../../../src/core/domain/history/order-context.ts'
import { headlinesOf, withLines } from '../../console/cli/config-cases.ts'
import { nameOf } from '../../support/portal/internal-routes.ts'
import { JSON_SCHEMA } from '../../support/relay/load-config.ts'
import { INTERNAL_ROUTES } from '../../support/relay/routes.ts'

/** Lists the members of a JSON schema that are objects with free names. */
function freeNamesIn(schema: unknown, path = ''): readonly string[] {
  if (typeof schema !== 'object' || schema === null) return []
  const members = new Map<string, unknown>(Object.entries(schema))
  const below = [...new Map<string, unknown>(Object.entries(Object(members.get('properties'))))].flatMap(([name, each]) =>
    freeNamesIn(each, path === '' ? name : `${path}.${name}`),
  )
  const others = ['anyOf', 'oneOf', 'allOf'].flatMap((name) =>
    Object.values(Object(members.get(name))).flatMap((one) => freeNamesIn(one, path)),
  )
  const isFree = typeof members.get('additionalProperties') === 'object'
  return [...(isFree ? [path] : []), ...below, ...others, ...freeNamesIn(members.get('items'), `${path}[]`)]
}

function refusalOf(read: () => unknown): string {
  try {
    return `taken: ${JSON.stringify(read())}`
  } catch (error) {
    return error instanceof Error ? error.message : ''
  }
}

const proto = (value: unknown) => JSON.parse(`{"__proto__":${JSON.stringify(value)}}`)
const endpoint = { name: 'shop', url: 'https://shop.internal/hook' }
const LABEL = 'must be named by 1 to 32 of the characters a-z, 0-9 and -'
const HEADER = 'cannot be the name of a fixed header'

/** What says of `__proto__` each place where an operator or an app may choose names. zod alone would leave it out without a word. */
const PLACES: Readonly<Record<string, readonly [said: () => string, expected: string]>> = {
  'config poll.cadence': [
    () => headlinesOf(withLines('poll: { cadence: { __proto__: 1h } }')).join(),
    'poll.cadence.(unusual name): cannot be a key here',
  ],
  'config endpoints[].headers': [
    () =>
      headlinesOf(
        withLines('endpoints:', `- { name: a, url: "https://a/", sharedKey: "${'k'.repeat(32)}", headers: { __proto__: "x" } }`),
      ).join(),
    `endpoints[0].headers.(unusual name): ${HEADER}`,
  ],
  'PUT /relay/parcels/:identifier labels': [() => refusalOf(() => parseOrderContext({ labels: proto('x') })), `labels.__proto__ ${LABEL}.`],
  'POST /relay/endpoints headers': [
    () => refusalOf(() => parseNewEndpoint({ ...endpoint, headers: proto('x') })),
    `headers.__proto__ ${HEADER}.`,
  ],
  'PATCH /relay/endpoints/:id headers': [
    () => refusalOf(() => parseEndpointChange({ headers: proto(null) })),
    `headers.__proto__ ${HEADER}.`,
  ],
}

test('every place where names are free refuses __proto__ and says where it is', () => {
  const bodies = INTERNAL_ROUTES.flatMap((row) => {
    const schema = row.body?.content['application/json']?.schema()
    const places = schema === undefined ? [] : freeNamesIn(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }))
    return places.map((place) => `${nameOf(row)} ${place}`)
  })
  const places = [...freeNamesIn(JSON_SCHEMA).map((place) => `config ${place}`), ...bodies]
  expect(places.toSorted()).toEqual(Object.keys(PLACES).toSorted())
  for (const [place, [said, expected]] of Object.entries(PLACES))
    expect([place, said()]).toEqual([place, expect.stringContaining(expected)])
})

test('a list of parcels refuses a label named __proto__, as a column and in a line', () => {
  const csv = createWatchLineReader('csv', null, 'orders')('trackingNumber,label:__proto__')
  expect(csv).toMatchObject({ kind: 'refused', reason: expect.stringContaining('The column "label:__proto__" names no label') })
  const line = createWatchLineReader('ndjson', null, 'orders')('{"identifier":"AB123456","labels":{"__proto__":"x","a":"1"}}')
  expect(line).toEqual({ kind: 'bad', reason: `has a wrong labels.__proto__: it ${LABEL}` })
})
