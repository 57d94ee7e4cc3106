import { describe, expect, test } from 'vitest'
import {
  isSameContext,
  lastContext,
  NO_CONTEXT,
  orderHeaders,
  parseOrderContext,
  parseOrderPart,
  withPart,
} from '../../../../src/core/domain/history/order-context.ts'

function problemsOf(body: unknown): string {
  try {
    parseOrderContext(body)
    return ''
  } catch (error) {
    return error instanceof Error ? error.message : ''
  }
}

const labelsOf = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, nth) => [`label-${nth}`, 'x']))

describe('what is read as an order context', () => {
  test('8.1: what is left out is empty, and white space around texts is dropped', () => {
    expect(parseOrderContext({})).toEqual(NO_CONTEXT)
    expect(parseOrderContext({ reference: ' A-1 ', labels: { b: ' 2 ', a: '' }, note: '\n two\nlines ' })).toEqual({
      reference: 'A-1',
      labels: { a: '', b: '2' },
      note: 'two\nlines',
    })
    expect(parseOrderContext({ note: ' ' })).toEqual(NO_CONTEXT)
  })

  test('8.1: the greatest reference, labels and note are taken, counted in whole characters', () => {
    const labels = { ...labelsOf(15), [`${'x'.repeat(31)}-`]: '😀'.repeat(100) }
    const greatest = { reference: '😀'.repeat(100), labels, note: '😀'.repeat(1000) }
    expect(parseOrderContext(greatest)).toMatchObject({ reference: greatest.reference, note: greatest.note })
    expect(Object.keys(parseOrderContext(greatest).labels)).toHaveLength(16)
  })

  test.each([
    [{ reference: '' }, 'reference must have 1 to 100 characters.'],
    [{ reference: 'x'.repeat(101) }, 'reference must have at most 100 characters.'],
    [{ reference: 1207 }, 'reference must be text.'],
    [{ reference: 'a\u0000' }, 'reference must not hold control characters or half characters.'],
    [{ reference: '\ud800' }, 'reference must not hold control characters or half characters.'],
    [{ reference: 'two\nlines' }, 'reference must not hold control characters or half characters.'],
    [{ labels: { Shop: 'x' } }, 'labels.Shop must be named by 1 to 32 of the characters a-z, 0-9 and -.'],
    [{ labels: { '': 'x' } }, 'labels. must be named by 1 to 32 of the characters a-z, 0-9 and -.'],
    [{ labels: labelsOf(17) }, 'labels must hold at most 16 labels.'],
    [{ labels: { a: null } }, 'labels.a must be text.'],
    [{ labels: ['a'] }, 'labels must be a JSON object with the name and the value of each label.'],
    [{ note: 'x'.repeat(1001) }, 'note must have at most 1000 characters.'],
    [{ note: '\u001b[31m' }, 'note must not hold control characters or half characters.'],
    [{ refrence: 'x' }, 'There is no member "refrence" here; did you mean "reference"?'],
    [[], 'The body must be a JSON object.'],
  ])('8.1: what is wrong is said with its place (%#)', (body, message) => {
    expect(problemsOf(body)).toBe(message)
  })

  test('8.1: names of members that every object has are labels like others', () => {
    const labels = JSON.parse('{"constructor":"a","valueof":"b"}')
    expect(Object.entries(parseOrderContext({ labels }).labels)).toEqual([
      ['constructor', 'a'],
      ['valueof', 'b'],
    ])
  })
})

test('8.2: a line replaces the members that it names, and leaves the others', () => {
  const before = { reference: 'A', labels: { a: '1', b: '2' }, note: 'N' }
  expect(withPart(before, {})).toEqual(before)
  expect(withPart(before, { reference: 'B' })).toEqual({ ...before, reference: 'B' })
  expect(withPart(before, { labels: { c: '3' } })).toEqual({ ...before, labels: { c: '3' } })
  expect(withPart(before, { reference: null, labels: {}, note: null })).toEqual(NO_CONTEXT)
})

test('8.2: a line whose members cannot be read says which and why', () => {
  expect(parseOrderPart({ reference: 1207, order: 4 })).toBe('has a wrong reference: it must be text')
  expect(parseOrderPart({ labels: { A: 'x' } })).toBe('has a wrong labels.A: it must be named by 1 to 32 of the characters a-z, 0-9 and -')
  expect(parseOrderPart({ order: 4 })).toEqual({})
})

test('8.2: contexts are the same whatever the order of their labels', () => {
  const labels = { a: '1', b: '2' }
  expect(isSameContext({ ...NO_CONTEXT, labels }, { ...NO_CONTEXT, labels: { b: '2', a: '1' } })).toBe(true)
  expect(isSameContext({ ...NO_CONTEXT, labels }, { ...NO_CONTEXT, labels: { a: '2', b: '1' } })).toBe(false)
})

test('8.3: of several contexts the last said counts, and wholly', () => {
  const [first, last] = [
    { ...NO_CONTEXT, reference: 'A', sequence: 3 },
    { ...NO_CONTEXT, note: 'B', sequence: 7 },
  ]
  for (const contexts of [
    [first, last],
    [last, first],
  ])
    expect(lastContext(contexts)).toBe(last)
  expect(lastContext([])).toBeNull()
})

describe('the headers of an order context', () => {
  test('8.6: values are percent-encoded, and the note is not among them', () => {
    expect(orderHeaders({ ...NO_CONTEXT, reference: 'Å 1\u2028%', labels: { empty: '', shop: 'a,b;"c"' } })).toEqual({
      'relay-reference': '%C3%85%201%E2%80%A8%25',
      'relay-label-empty': '',
      'relay-label-shop': 'a%2Cb%3B%22c%22',
    })
    expect(orderHeaders(NO_CONTEXT)).toEqual({})
  })

  test('8.6: a value of more than 200 bytes is left out and named', () => {
    const labels = { fits: 'x'.repeat(100), long: '\u{1f600}'.repeat(17), short: '\u{1f600}'.repeat(16) }
    expect(orderHeaders({ reference: 'å'.repeat(34), labels })).toEqual({
      'relay-label-fits': 'x'.repeat(100),
      'relay-label-short': '%F0%9F%98%80'.repeat(16),
      'relay-omitted': 'relay-reference, relay-label-long',
    })
  })
})
