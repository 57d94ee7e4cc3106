import { expect, test } from 'vitest'
import { z } from 'zod'
import { parseEndpointChange, parseNewEndpoint } from '../../../src/core/domain/delivery/endpoint-settings.ts'
import { AppError } from '../../../src/core/domain/errors.ts'
import { readInput } from '../../../src/core/domain/read-input.ts'
import { parseReplayOrder } from '../../../src/upkeep/replay/replay.rules.ts'

/** Returns the refusal of a body: its sentences, and the field of each. */
function refusalOf(read: () => unknown): readonly unknown[] {
  try {
    read()
  } catch (error) {
    if (error instanceof AppError) return [error.code, error.message, error.facts]
  }
  throw new Error('it was not refused')
}

test('one error names all faults of a body in plain words, with the nearest name', () => {
  const body = { nam: 'shop', url: 7, signature: 'standard', filters: { statuss: ['A'] }, rate: 0, schedule: ['5s', 'soon'], __proto__x: 1 }
  const [code, message, facts] = refusalOf(() => parseNewEndpoint(body))
  expect(code).toBe('bad_request')
  const sentences = [
    'name is missing: it must be text.',
    'url must be text.',
    'signature must be one of carrier, standard-webhooks.',
    'There is no member "filters.statuss" here; did you mean "filters.status"?',
    'rate must be at least 0.01.',
    'schedule.1 must be a duration such as 30s, at most 365d.',
    'There is no member "nam" here; did you mean "name"?',
    'There is no member "__proto__x" here; there are name, url, enabled, signature, filters, events, backfill, rate, concurrency, schedule, refusals, headers, sharedKey, from.',
  ]
  expect(message).toBe(sentences.join(' '))
  expect(facts).toEqual({
    errors: ['/name', '/url', '/signature', '/filters/statuss', '/rate', '/schedule/1', '/nam', '/__proto__x'].map((pointer, at) => ({
      pointer: `#${pointer}`,
      detail: sentences[at],
    })),
  })
})

test.each([
  ['no object', () => parseNewEndpoint([]), 'The body must be a JSON object.'],
  ['nothing', () => parseEndpointChange(undefined), 'The body is missing: it must be a JSON object.'],
  [
    'text instead of a list',
    () => parseEndpointChange({ schedule: 'x' }),
    'schedule must be a list of durations from 0s to 365d, such as ["5s", "5m", "30m"].',
  ],
  ['a short key', () => parseEndpointChange({ sharedKey: 'x' }), 'sharedKey must have at least 16 bytes.'],
  ['an empty name', () => parseEndpointChange({ name: '' }), 'name must not be empty.'],
  [
    'an order that does not say what to replay',
    () => parseReplayOrder({}),
    'The body must say what to replay: "since", "sequence", "parcel" or "of".',
  ],
  [
    'a state close to a known one',
    () => parseReplayOrder({ parcel: 'A', state: 'deliverd' }),
    'state must be one of delivered, dead, cancelled; did you mean delivered?',
  ],
])('%s is refused in a sentence', (_name, read, sentence) => {
  expect(refusalOf(read)[1]).toBe(sentence)
})

test('the answer is short, however much is wrong', () => {
  const body = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => ['x'.repeat(2000) + at, at]))
  const [, message, facts] = refusalOf(() => readInput('body', z.strictObject({ name: z.string() }), body))
  expect(String(message).length).toBeLessThan(5000)
  expect(message).toContain('4981 more things are wrong.')
  expect(facts).toMatchObject({ errors: { length: 20 } })
})

test('the answer repeats no value of the body, because it may be a key', () => {
  expect(refusalOf(() => parseEndpointChange({ sharedKey: ' secret-secret-secret', name: ' secret' })).join()).not.toContain('secret')
})

test('a fixed header that an endpoint must not have is refused with the reason, at its name', () => {
  const headers = { 'Content-Type': 'text/plain', Host: 'shop' }
  const sentences = [
    'headers.Content-Type begins with content-, which only the relay sets.',
    'headers.Host is about the connection, so an endpoint cannot set it.',
  ]
  const errors = [
    { pointer: '#/headers/Content-Type', detail: sentences[0] },
    { pointer: '#/headers/Host', detail: sentences[1] },
  ]
  expect(refusalOf(() => parseEndpointChange({ headers }))).toEqual(['bad_request', sentences.join(' '), { errors }])
})
