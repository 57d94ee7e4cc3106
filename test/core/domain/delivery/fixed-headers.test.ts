import { expect, test } from 'vitest'
import { fixedHeaderProblem, fixedValueProblem } from '../../../../src/core/domain/delivery/endpoint-keys.ts'

test.each([
  ['Host', 'about the connection'],
  ['connection', 'about the connection'],
  ['Transfer-Encoding', 'about the connection'],
  ['TE', 'about the connection'],
  ['Proxy-Authorization', 'about the connection'],
  ['Content-Type', 'only the relay sets'],
  ['content-length', 'only the relay sets'],
  ['X-Service-HMAC-SHA256', 'only the relay sets'],
  ['webhook-id', 'only the relay sets'],
  ['Relay-Test', 'only the relay sets'],
  ['x-forwarded-user', 'portal.trustedHeader'],
  ['', 'not the name of a header'],
  ['two words', 'not the name of a header'],
  ['né', 'not the name of a header'],
  ['a\r\nb', 'not the name of a header'],
])('the header %j is refused, because it is %s', (name, why) => {
  expect(fixedHeaderProblem(name, 'X-Forwarded-User')).toContain(why)
})

test.each(['Authorization', 'X-Api-Key', 'Cookie', 'User-Agent', 'X-Tenant', 'host-of-mine'])('the header %s may be fixed', (name) => {
  expect(fixedHeaderProblem(name, 'X-Forwarded-User')).toBeNull()
})

test.each(['', ' a', 'a ', 'a\r\nb: c', 'a\u0000', 'é', '\u2028', 'x'.repeat(4097)])(
  'the value %j is refused and not repeated',
  (value) => {
    expect(fixedValueProblem(value)).toMatch(/^(must be printable|is longer)/)
  },
)

test('printable text is a valid value', () => {
  for (const value of ['Bearer abc.DEF-123~+/=', 'a b', '!']) expect(fixedValueProblem(value)).toBeNull()
})
