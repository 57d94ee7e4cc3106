import { readFileSync, writeFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { createWordSearch, type Page, type SoughtWord, unusedParts, usedParts } from '../../../src/upkeep/erasure/page-search.ts'
import { leaveLeftovers } from '../../core/store/sqlite/leave-leftovers.ts'
import { drawWith, seeded } from '../../support/runner/seeded.ts'

const PAGE_BYTES = 4096
function pagesOf(bytes: Buffer): readonly Page[] {
  return Array.from({ length: bytes.length / PAGE_BYTES }, (_, nth) => ({
    from: nth * PAGE_BYTES,
    to: (nth + 1) * PAGE_BYTES,
    head: nth === 0 ? 100 : 0,
  }))
}

function rowsOf(path: string): readonly unknown[] {
  const db = new Database(path)
  try {
    expect(db.pragma('integrity_check')).toEqual([{ integrity_check: 'ok' }])
    return ['name', 'body'].flatMap((table) => db.prepare(`select * from ${table} order by 1`).all())
  } finally {
    db.close()
  }
}

test.each([1, 2])('overwriting the unused parts of pages changes no row (seed %i)', (seed) => {
  const { path } = leaveLeftovers(seed)
  const before = rowsOf(path)
  const bytes = readFileSync(path)
  let unused = 0
  for (const page of pagesOf(bytes)) {
    for (const { from, to } of unusedParts(bytes, page)) {
      bytes.fill(0xa5, from, to)
      unused += to - from
    }
  }
  writeFileSync(path, bytes)
  expect(unused).toBeGreaterThan(PAGE_BYTES)
  expect(rowsOf(path)).toEqual(before)
})

test.each([1, 2])('SQLite leaves the words of deleted rows only in unused parts of pages (seed %i)', (seed) => {
  const { path, gone } = leaveLeftovers(seed)
  const bytes = readFileSync(path)
  const search = createWordSearch(gone.map((word) => ({ word, isWhole: false })))
  const found = { all: 0, unused: 0, used: 0 }
  search(bytes, { from: 0, to: bytes.length }, () => (found.all += 1))
  for (const page of pagesOf(bytes)) {
    for (const part of unusedParts(bytes, page)) search(bytes, part, () => (found.unused += 1))
    for (const part of usedParts(bytes, page)) search(bytes, part, () => (found.used += 1))
  }
  expect(found.all).toBeGreaterThan(0)
  expect(found).toMatchObject({ unused: found.all, used: 0 })
})

test('one search for many words finds the same as one search for each word', () => {
  const { below, pick } = drawWith(seeded(4))
  const letters = [...'ABab01-']
  const text = Array.from({ length: 20_000 }, () => pick(letters)).join('')
  const words = [...new Set(Array.from({ length: 300 }, () => Array.from({ length: 4 + below(4) }, () => pick([...'AB01'])).join('')))]
  const sought = words.map((word): SoughtWord => ({ word, isWhole: below(2) === 0 }))
  const found: string[] = []
  createWordSearch(sought)(Buffer.from(text), { from: 100, to: text.length - 100 }, (word) => found.push(word))
  const part = text.slice(100, -100)
  const expected = sought.flatMap(({ word, isWhole }) =>
    Array.from(part.matchAll(new RegExp(isWhole ? `(?<![A-Za-z0-9])${word}(?![A-Za-z0-9])` : `(?=${word})`, 'gi')), () => word),
  )
  expect(expected.length).toBeGreaterThan(100)
  expect(found.sort()).toEqual(expected.sort())
})
