import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openTombstoneFile } from '../../../../src/core/store/sqlite/tombstone-file.ts'
import { encodeTombstones } from '../../../../src/core/store/tombstone-lines.ts'
import { temporaryFolder } from '../../../support/runner/temporary.ts'

const NONE = { sealedKey: null, tombstones: [] }
const tombstone = (mark: string) => ({ mark, parcelId: 1, erasedAtMs: 1000 })
const three = { sealedKey: 'sealed', tombstones: ['one', 'two', 'three'].map(tombstone) }

function fileOf(text: string) {
  const store = join(temporaryFolder(), 'relay.db')
  writeFileSync(`${store}.tombstones`, text)
  return { store, text: () => readFileSync(`${store}.tombstones`, 'utf8') }
}

/** What is left of a write that was interrupted at each of its bytes, after two whole lines. */
const whole = encodeTombstones({ ...three, tombstones: three.tombstones.slice(0, 2) })
const line = encodeTombstones({ sealedKey: null, tombstones: [tombstone('three')] })
const CUTS = Array.from({ length: line.length }, (_, at) => whole + line.slice(0, at))

test('after a line that was cut off at any byte, the next erasures are in whole lines', () => {
  for (const cut of CUTS) {
    const started = fileOf(cut)
    openTombstoneFile(started.store, NONE).append([tombstone('later')])
    // A write that was cut off while the relay ran, and could not be undone.
    const running = fileOf(whole)
    const open = openTombstoneFile(running.store, NONE)
    appendFileSync(`${running.store}.tombstones`, cut.slice(whole.length))
    open.append([tombstone('later')])
    for (const { store } of [started, running]) {
      const { missed } = openTombstoneFile(store, NONE)
      expect(missed.sealedKey).toBe('sealed')
      const marks = missed.tombstones.map(({ mark }) => mark)
      const isWhole = cut.length === whole.length + line.length - 1
      expect([cut, marks]).toEqual([cut, isWhole ? ['one', 'two', 'three', 'later'] : ['one', 'two', 'later']])
    }
  }
})

test('a start completes the file from the store, whatever is left of it', () => {
  const newestAlone = line
  for (const left of ['', newestAlone, whole, ...CUTS.slice(1, 3)]) {
    const { store, text } = fileOf(left)
    expect(openTombstoneFile(store, three).missed).toEqual({ sealedKey: 'sealed', tombstones: [] })
    const again = openTombstoneFile(store, NONE).missed
    expect([again.sealedKey, new Set(again.tombstones.map(({ mark }) => mark))]).toEqual(['sealed', new Set(['one', 'two', 'three'])])
    expect([text().endsWith('\n'), statSync(`${store}.tombstones`).mode & 0o077]).toEqual([true, 0])
  }
})

test('what a restored store gets from the file of its tombstones is not written into it again', () => {
  const { store, text } = fileOf(encodeTombstones(three))
  const open = openTombstoneFile(store, { ...three, tombstones: [tombstone('one')] })
  open.append(open.missed.tombstones)
  expect(text()).toBe(encodeTombstones(three))
  open.append([{ ...tombstone('two'), erasedAtMs: 2000 }, tombstone('four')])
  expect(text().split('\n')).toHaveLength(7)
})

test('tombstones whose key may be another one are not mixed with those of the store', () => {
  const { store, text } = fileOf(encodeTombstones(three))
  openTombstoneFile(store, { sealedKey: 'of another store', tombstones: [tombstone('four')] })
  expect(text()).toBe(encodeTombstones(three))
})

test('a line that cannot be read is named, and nothing is written', () => {
  for (const damaged of ['{"mark":"tw', '{"mark":"two"}', '\u0000\u0000', '[]']) {
    const { store, text } = fileOf(`${encodeTombstones({ ...three, tombstones: [tombstone('one')] })}${damaged}\n${line}`)
    const before = text()
    expect(() => openTombstoneFile(store, three)).toThrow(`line 3 of ${store}.tombstones cannot be read`)
    expect(text()).toBe(before)
  }
})
