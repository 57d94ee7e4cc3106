import { fstatSync, readlinkSync, readSync } from 'node:fs'
import { setPriority } from 'node:os'
import { basename } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import type { SearchData, SearchResult } from './clean-storage.ts'
import { createWordSearch, type Page, type Part, type SoughtWord, unusedParts, usedParts } from './page-search.ts'

/** How much is read at a time: a multiple of every page size. */
const STRETCH_BYTES = 1024 * 1024
const FILE_HEADER_BYTES = 100
/** Offsets in the header of the file. */
const PAGE_SIZE = 16
const RESERVED = 20
/** The thread gets a lower priority than the threads that receive pushes and answer requests. */
const NICENESS = 10

/** Searches the file of a store for words that were erased, while the store goes on writing to the file. */
if (parentPort === null) throw new Error('this file runs only as a worker thread of the store')
// Only `createFileSearch` starts this thread, so the shape is certain.
const { file, identifiers, texts } = workerData as SearchData
beNice()
const [pageBytes, usableBytes] = readSizes()
const fileBytes = fstatSync(file).size
parentPort.postMessage({ leftovers: countLeftovers() } satisfies SearchResult)

/** Only Linux has a priority for each thread, so on other systems nothing changes. */
function beNice(): void {
  try {
    setPriority(Number(basename(readlinkSync('/proc/thread-self'))), NICENESS)
  } catch {}
}

function readSizes(): readonly [number, number] {
  const header = Buffer.alloc(FILE_HEADER_BYTES)
  readSync(file, header, 0, FILE_HEADER_BYTES, 0)
  const size = header.readUInt16BE(PAGE_SIZE)
  const bytes = size === 1 ? 65_536 : size
  return [bytes, bytes - header.readUInt8(RESERVED)]
}

/**
 * Counts the occurrences of erased words in unused parts of pages. A word of an erased text is ignored if a used part has it too, because
 * most words of texts are also in the texts of other parcels.
 */
function countLeftovers(): number {
  const isIdentifier = new Set(identifiers)
  const found = searchUnused([
    ...identifiers.map((word): SoughtWord => ({ word, isWhole: false })),
    ...texts.filter((word) => !isIdentifier.has(word)).map((word): SoughtWord => ({ word, isWhole: true })),
  ])
  const doubtful = new Set([...found.keys()].filter((word) => !isIdentifier.has(word)))
  if (doubtful.size > 0) dropLiving(doubtful)
  let leftovers = 0
  for (const [word, times] of found) if (isIdentifier.has(word) || doubtful.has(word)) leftovers += times
  return leftovers
}

/** Counts the words in the unused parts of all pages. */
function searchUnused(words: readonly SoughtWord[]): ReadonlyMap<string, number> {
  const search = createWordSearch(words)
  const found = new Map<string, number>()
  const again = Buffer.alloc(pageBytes)
  const searchPage = (bytes: Buffer, page: Page) => {
    const seen: string[] = []
    for (const part of unusedParts(bytes, page)) search(bytes, part, (word) => seen.push(word))
    return seen
  }
  for (const { bytes, page, at } of pagesOfFile()) {
    if (searchPage(bytes, page).length === 0) continue
    // While SQLite writes a page, a reader may see half of the new page and half of the old one. So count only what a second read finds too.
    readSync(file, again, 0, pageBytes, at)
    for (const word of searchPage(again, { ...page, from: 0, to: usableBytes })) found.set(word, (found.get(word) ?? 0) + 1)
  }
  return found
}

/** Removes from `words` those that are in used parts of pages. */
function dropLiving(words: Set<string>): void {
  const search = createWordSearch([...words].map((word) => ({ word, isWhole: true })))
  for (const { bytes, page } of pagesOfFile()) {
    for (const part of usedParts(bytes, page)) search(bytes, part, (word) => words.delete(word))
    if (words.size === 0) return
  }
}

interface PageOfFile {
  readonly bytes: Buffer
  readonly page: Part & Page
  /** Where the page begins in the file. */
  readonly at: number
}

/** Reads the pages that the file had when the search began. */
function* pagesOfFile(): Generator<PageOfFile, void> {
  const bytes = Buffer.alloc(STRETCH_BYTES)
  for (let start = 0; start < fileBytes; start += STRETCH_BYTES) {
    const length = Math.min(STRETCH_BYTES, fileBytes - start)
    if (readSync(file, bytes, 0, length, start) < length) throw new Error('the file has become shorter')
    for (let from = 0; from + pageBytes <= length; from += pageBytes) {
      const at = start + from
      yield { bytes, at, page: { from, to: from + usableBytes, head: at === 0 ? FILE_HEADER_BYTES : 0 } }
    }
  }
}
