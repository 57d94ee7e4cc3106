import { readFileSync } from 'node:fs'
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, test } from 'vitest'
import { apiDocument, expectConforms, operations, validatorAt } from '../../support/portal/api-document.ts'
import { nameOf } from '../../support/portal/internal-routes.ts'
import { ROUTES } from '../../support/relay/routes.ts'

test('an independent validator accepts the document as OpenAPI 3.1', async () => {
  const validator = new Validator()
  expect(await validator.validate(JSON.parse(readFileSync('docs/openapi.json', 'utf8')))).toEqual({ valid: true })
  expect(validator.version).toBe('3.1')
})

test('the document has the same routes as the relay', () => {
  const documented = operations.map(({ method, path }) => nameOf({ method, path: `/${path.slice(1).replace(/\{(\w+)\}/g, ':$1')}` }))
  expect(documented.toSorted()).toEqual(ROUTES.map(nameOf).toSorted())
})

test('docs/api.md names every address of the document with its methods, and no other', () => {
  const named = readFileSync('docs/api.md', 'utf8').matchAll(/((?:`[A-Z]+`, )*`[A-Z]+) (\/[^\s`?]*)/g)
  const found = [...named].flatMap(([, methods = '', path = '']) => methods.match(/[A-Z]+/g)?.map((method) => `${method} ${path}`) ?? [])
  const documented = operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`)
  expect([...new Set(found)].toSorted()).toEqual(documented.toSorted())
})

test('each example of a parameter and of a body fits its own schema', () => {
  for (const { method, path, operation } of operations) {
    const place = ['paths', path, method]
    operation.parameters.forEach(({ name, example }, at) => {
      if (example === undefined) return
      const validate = validatorAt(...place, 'parameters', String(at), 'schema')
      expect([method, path, name, validate(example)]).toEqual([method, path, name, true])
    })
    for (const [type, { example }] of Object.entries(operation.requestBody?.content ?? {})) {
      const validate = validatorAt(...place, 'requestBody', 'content', type, 'schema')
      expect([method, path, type, validate(example), validate.errors]).toEqual([method, path, type, true, null])
    }
  }
})

describe('answers are compared with the document', () => {
  const answer = {
    method: 'GET',
    path: '/healthz',
    status: 200,
    headers: new Headers({ 'content-type': 'application/json' }),
    text: '{"status":"ok"}',
  }
  const problem = {
    ...answer,
    path: '/nothing',
    status: 404,
    headers: new Headers({ 'content-type': 'application/problem+json' }),
    text: '{}',
  }

  test('a documented answer passes', () => {
    expectConforms(answer)
    expectConforms({ ...answer, method: 'HEAD', text: '' })
    expectConforms(problem)
  })

  test.each([
    ['another status', { ...answer, status: 418 }, 'undocumented status'],
    ['another content type', { ...answer, headers: new Headers({ 'content-type': 'text/html' }) }, 'undocumented content type text/html'],
    ['a member that is missing', { ...answer, text: '{}' }, "must have required property 'status'"],
    ['a member too many', { ...answer, text: '{"status":"ok","more":1}' }, 'must NOT have additional properties'],
    ['another value', { ...answer, text: '{"status":"fine"}' }, 'must be equal to constant'],
    ['a path that the document lacks', { ...answer, path: '/nothing' }, 'the document has no such address'],
    [
      'a header that is missing',
      { ...answer, path: '/v1/status/AB123456789SE/all', status: 304, headers: new Headers(), text: '' },
      'without the header',
    ],
  ])('%s is a fault', (_name, wrong, fault) => {
    expect(() => expectConforms(wrong)).toThrow(fault)
  })

  test('problems with the same status share a response, which is named after their types', () => {
    expect(Object.keys(apiDocument.components.responses)).toContain('feed_gone.feed_rewound')
  })
})
