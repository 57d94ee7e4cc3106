import { expect, test } from 'vitest'
import { addRestore, gapAt, nextMultiple, parseRestores, type RestoreRecord } from '../../../../src/core/domain/admin/restore.ts'

const restore: RestoreRecord = { atMs: 1, backup: 'a', madeAtMs: 0, from: 5, to: 1e9, delivered: 2, isTold: false }

test.each([
  [0, 1e9],
  [1, 1e9],
  [999_999_999, 1e9],
  [1e9, 2e9],
  [1e9 + 1, 2e9],
  [7e9 + 5, 8e9],
])('after a restore, a counter that was at %i continues at %i', (last, next) => {
  expect(nextMultiple(last)).toBe(next)
})

test.each([
  [4, null],
  [5, null],
  [6, restore],
  [999_999_999, restore],
  [1e9, null],
  [1e9 + 1, null],
])('a reader at sequence %i is in the gap of this restore: %j', (sequence, gap) => {
  expect(gapAt([restore], sequence)).toEqual(gap)
})

test('stored restores read back unchanged, and a text in another form is ignored', () => {
  expect(parseRestores(JSON.stringify(addRestore([restore], { ...restore, backup: 'b' })))).toMatchObject([
    { backup: 'a' },
    { backup: 'b' },
  ])
  for (const text of ['', '{}', '[1]']) expect(parseRestores(text)).toEqual([])
})
