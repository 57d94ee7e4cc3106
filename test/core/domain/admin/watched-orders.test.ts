import { expect, test } from 'vitest'
import { createWatchLineReader } from '../../../../src/core/domain/admin/parcel-list.ts'

const csv = (...lines: readonly string[]) => lines.map(createWatchLineReader('csv', null, 'orders'))

test('8.2: the columns reference and label:NAME say what they hold, and an empty cell nothing', () => {
  expect(csv('reference;trackingNumber;label:shop;Label:priority', 'A-1;AB123456;north;', ';AB123457;;', '="007";AB123458;;high')).toEqual([
    { kind: 'nothing' },
    { kind: 'identifier', identifier: 'AB123456', order: { reference: 'A-1', labels: { shop: 'north' } } },
    { kind: 'identifier', identifier: 'AB123457' },
    { kind: 'identifier', identifier: 'AB123458', order: { reference: '007', labels: { priority: 'high' } } },
  ])
})

test('8.2: a line with a wrong value is bad, and says which', () => {
  expect(csv('trackingNumber,reference,label:shop', `AB123456,${'x'.repeat(101)},`, `AB123457,,${'x'.repeat(101)}`, 'no,x,')).toEqual([
    { kind: 'nothing' },
    { kind: 'bad', reason: 'has a wrong reference: it must have at most 100 characters' },
    { kind: 'bad', reason: 'has a wrong labels.shop: it must have at most 100 characters' },
    { kind: 'bad', reason: expect.stringContaining('is not an identifier') },
  ])
})

test('8.2: a column that names no label, and two of one name, refuse the list', () => {
  expect(csv('trackingNumber,label:Big Shop')).toEqual([
    { kind: 'refused', reason: 'The column "label:Big Shop" names no label: a name has 1 to 32 of the characters a-z, 0-9 and -.' },
  ])
  expect(csv('trackingNumber,reference,Reference')).toEqual([{ kind: 'refused', reason: 'Two columns are named "Reference".' }])
})

test('8.2: a list without a header, and one of identifiers to erase, hold no orders', () => {
  expect(csv('AB123456')).toEqual([{ kind: 'identifier', identifier: 'AB123456' }])
  expect(['trackingNumber,reference,label:??', `AB123456,${'x'.repeat(101)},`].map(createWatchLineReader('csv'))).toEqual([
    { kind: 'nothing' },
    { kind: 'identifier', identifier: 'AB123456' },
  ])
})

test('8.2: in NDJSON the members reference, labels and note are read, and others left out', () => {
  const read = createWatchLineReader('ndjson', null, 'orders')
  expect(read('{"identifier":"AB123456","reference":"A","labels":{"a":"1"},"note":"n","order":7}')).toEqual({
    kind: 'identifier',
    identifier: 'AB123456',
    order: { reference: 'A', labels: { a: '1' }, note: 'n' },
  })
  expect(read('{"identifier":"AB123456","order":7}')).toEqual({ kind: 'identifier', identifier: 'AB123456' })
  expect(read('{"identifier":"AB123456","reference":7}')).toEqual({ kind: 'bad', reason: 'has a wrong reference: it must be text' })
  expect(read('"AB123456"')).toEqual({ kind: 'identifier', identifier: 'AB123456' })
})
