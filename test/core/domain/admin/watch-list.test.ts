import { expect, test } from 'vitest'
import { createListDecoder, createWatchLineReader, type WatchLine } from '../../../../src/core/domain/admin/parcel-list.ts'

/** Returns the identifier in each line of a CSV list, or the kind of the line if it has none. */
function readCsv(text: string, column: string | null = null): readonly string[] {
  const read = createWatchLineReader('csv', column)
  return text.split('\n').map((line) => shown(read(line)))
}

const shown = (line: WatchLine) => (line.kind === 'identifier' ? line.identifier : line.kind)

test.each(['Order;Kolli-ID\nA1;AB123456789SE', 'Order,Parcel\nA1,AB123456789SE', 'A1\tAB123456789SE', 'CSV00011,first\nCSV00012,second'])(
  'a CSV list of several columns, none with a known name, is refused as a whole: %j',
  (text) => {
    const [first] = text.split('\n').map(createWatchLineReader('csv'))
    expect(first).toMatchObject({ kind: 'refused', reason: expect.stringContaining('No column is named identifier') })
  },
)

test('the refusal of a CSV list names the columns that were found, but at most twenty', () => {
  const read = (line: string) => createWatchLineReader('csv')(line)
  expect(read('Order;Kolli-ID')).toMatchObject({ reason: expect.stringContaining('The first line has "Order", "Kolli-ID".') })
  const wide = read(Array.from({ length: 300 }, (_, at) => `${'x'.repeat(200)}${at}`).join(';'))
  expect(wide).toMatchObject({ reason: expect.stringContaining('and 280 more') })
  expect(wide.kind === 'refused' ? wide.reason.length : 0).toBeLessThan(1200)
})

test.each([
  ['by its name', 'kolli-id', 'Order;Kolli-ID\nA1;AB123456789SE', ['nothing', 'AB123456789SE']],
  ['by its number below a header', '2', 'Order;Kolli-ID\nA1;AB123456789SE', ['nothing', 'AB123456789SE']],
  ['by its number without a header', '1', 'CSV00011,first\nCSV00012,second', ['CSV00011', 'CSV00012']],
  ['by a name that is not there', 'Parcel', 'Order;Kolli-ID\nA1;AB123456789SE', ['refused']],
  ['by a number that is not there', '3', 'Order;Kolli-ID\nA1;AB123456789SE', ['refused']],
])('a column of a CSV list is chosen %s', (_way, column, text, expected) => {
  expect(readCsv(text, column).slice(0, expected.length)).toEqual(expected)
})

test.each([
  ['tabs', 'order\ttracking number\n1207\tAB123456789SE'],
  ['semicolons, although a name has a comma', 'order, internal;tracking number;note\n1207;AB123456789SE;'],
  ['commas', 'order,tracking number\n1207,AB123456789SE'],
])('columns of a CSV list may be separated by %s', (_name, text) => {
  expect(readCsv(text)).toEqual(['nothing', 'AB123456789SE'])
})

test.each([
  ['="00123456"', '00123456'],
  ['"=""00123456"""', '00123456'],
  ['AB 123 456 789 SE', 'AB123456789SE'],
  ['ab-123\u2011456\u2013789-se', 'AB123456789SE'],
  ['\u200bAB123456789SE\u00ad\u2069', 'AB123456789SE'],
  ['AB\u00a0123456789\u202fSE', 'AB123456789SE'],
  ['AB123456789SE?', 'bad'],
])('1.1: a number in a CSV list may be written as people copy it: %j', (cell, expected) => {
  expect(readCsv(`identifier\n${cell}`)).toEqual(['nothing', expected])
})

test('an unknown header of a CSV list with one column is reported, and not watched', () => {
  expect(readCsv('Kolli-ID\nAB123456789SE')).toEqual(['bad', 'AB123456789SE'])
  expect(readCsv('AB123456789SE\nKOLLIID')).toEqual(['AB123456789SE', 'KOLLIID'])
})

test('1.1: a number in an NDJSON list may hold only letters and digits', () => {
  expect(shown(createWatchLineReader('ndjson')('"AB 123 456"'))).toBe('bad')
})

test.each([
  ['UTF-8', Buffer.from('Försändelse;1')],
  ['UTF-8 with a byte order mark', Buffer.from('\ufeffFörsändelse;1')],
  ['UTF-16, little end first', Buffer.from('\ufeffFörsändelse;1', 'utf16le')],
  ['UTF-16, big end first', Buffer.from('\ufeffFörsändelse;1', 'utf16le').swap16()],
])('a list in %s is decoded, wherever its bytes are split', (_name, bytes) => {
  for (let at = 0; at <= bytes.length; at += 1) {
    const decoder = createListDecoder()
    expect(decoder.write(bytes.subarray(0, at)) + decoder.write(bytes.subarray(at)) + decoder.end()).toBe('Försändelse;1')
  }
})

test('a list of zero or one byte is decoded', () => {
  expect(createListDecoder().end()).toBe('')
  const decoder = createListDecoder()
  expect(decoder.write(Buffer.from('x')) + decoder.end()).toBe('x')
})

test.each(['AB123456789SE AB123456780SE', '1001\r1002'])('a line of CSV with several identifiers is bad, and says so: %j', (line) => {
  const read = createWatchLineReader('csv')
  expect(read('identifier')).toEqual({ kind: 'nothing' })
  expect(read(line)).toEqual({ kind: 'bad', reason: 'has more than one identifier: write one a line' })
})
