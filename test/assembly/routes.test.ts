import { expect, test } from 'vitest'
import { idOf } from '../../src/core/http/server/answer-schemas.ts'
import { apiRoute, NO_QUERY } from '../../src/core/http/server/route.ts'
import { nameOf, requestOf } from '../support/portal/internal-routes.ts'
import { INTERNAL_ROUTES, ROUTES } from '../support/relay/routes.ts'

const whole = {
  method: 'get',
  path: '/relay/things/:id',
  summary: 'Show a thing',
  description: '',
  scope: 'admin',
  params: { id: idOf('thing') },
  query: NO_QUERY,
  body: null,
  answers: () => ({}),
  problems: [],
  example: { path: { id: '1' } },
  answer: () => async () => undefined,
} as const

// `npm run types` is the real test: it fails if a line after `@ts-expect-error` compiles.
test('a route that lacks its scope, a schema, its example or its handler does not compile', () => {
  const { method: _m, ...noMethod } = whole
  const { scope: _s, ...noScope } = whole
  const { params: _p, ...noParams } = whole
  const { query: _q, ...noQuery } = whole
  const { body: _b, ...noBody } = whole
  const { answers: _r, ...noAnswers } = whole
  const { summary: _t, ...noSummary } = whole
  const { example: _e, ...noExample } = whole
  const { answer: _a, ...noHandler } = whole
  const rows = [
    apiRoute(whole),
    // @ts-expect-error it has no method
    apiRoute(noMethod),
    // @ts-expect-error it has no scope
    apiRoute(noScope),
    // @ts-expect-error its variable part has no schema
    apiRoute(noParams),
    // @ts-expect-error its query has no schema
    apiRoute(noQuery),
    // @ts-expect-error it does not say whether it takes a body
    apiRoute(noBody),
    // @ts-expect-error its answers have no schema
    apiRoute(noAnswers),
    // @ts-expect-error it has no summary
    apiRoute(noSummary),
    // @ts-expect-error it has no example
    apiRoute(noExample),
    // @ts-expect-error it has no handler
    apiRoute(noHandler),
    // @ts-expect-error its example does not fill the path
    apiRoute({ ...whole, example: { path: {} } }),
    // @ts-expect-error its path has a part that no schema describes
    apiRoute({ ...whole, path: '/relay/things/:id/:more' }),
  ]
  expect(rows).toHaveLength(12)
})

test('no two routes have the same method and path', () => {
  const names = ROUTES.map(nameOf)
  expect(new Set(names).size).toBe(names.length)
  expect(names.length).toBeGreaterThan(INTERNAL_ROUTES.length)
})

test.each(ROUTES.map(nameOf))('%s: its example fills the path', (name) => {
  expect(requestOf(name).path).toMatch(/^(\/[\w.-]+)+(\?[\w.&=-]+)?$/)
})
