import { createHash, type Hash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'

const CHUNK_BYTES = 4 * 1024 * 1024
const BLANK = '0'

/** The SHA-256 of a file in which a text, which stands there once, is replaced by zeros. So the file can hold its own digest. */
export interface FileDigest {
  readonly digest: string
  /** Where the text begins. */
  readonly at: number
}

/** Computes the digest in short parts. Null: the text does not stand in the file exactly once. */
export function* digestFile(path: string, text: string): Generator<void, FileDigest | null> {
  const file = openSync(path, 'r')
  try {
    const places: number[] = []
    let tail = Buffer.alloc(0)
    for (const { chunk, at } of chunksOf(file)) {
      // The text may begin in one chunk and end in the next.
      const searched = Buffer.concat([tail, chunk])
      for (let found = searched.indexOf(text); found !== -1; found = searched.indexOf(text, found + 1))
        places.push(at - tail.byteLength + found)
      tail = searched.subarray(Math.max(0, searched.byteLength - text.length + 1))
      yield
    }
    const [place] = places
    if (place === undefined || places.length > 1) return null
    const hash = createHash('sha256')
    for (const { chunk, at } of chunksOf(file)) {
      addWithout(hash, chunk, place - at, text.length)
      yield
    }
    return { digest: hash.digest('hex'), at: place }
  } finally {
    closeSync(file)
  }
}

function addWithout(hash: Hash, chunk: Buffer, from: number, length: number): void {
  const [start, end] = [from, from + length].map((place) => Math.min(chunk.byteLength, Math.max(0, place)))
  hash.update(chunk.fill(BLANK, start, end))
}

function* chunksOf(file: number): Generator<{ readonly chunk: Buffer; readonly at: number }> {
  for (let at = 0; ; ) {
    const chunk = Buffer.alloc(CHUNK_BYTES)
    const read = readSync(file, chunk, 0, CHUNK_BYTES, at)
    if (read === 0) return
    yield { chunk: chunk.subarray(0, read), at }
    at += read
  }
}
