import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const naming = (word: string) =>
  globSync('src/**/*.ts')
    .filter((path) => new RegExp(`\\b${word}\\b`).test(readFileSync(path, 'utf8')))
    .toSorted()

// The memory of the writer, the statements of both engines and the rebuild once named each column again: a new one took eleven files.
test('a column of a parcel is named by its description and its codec, and by nothing that reads or writes whole rows', () => {
  expect(naming('first_pushed_at_ms')).toEqual(['src/core/store/codec.ts', 'src/core/store/tables.ts'])
})
