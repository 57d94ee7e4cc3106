import { closeSync, readSync } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'
import { onFile, openRegular } from '../../regular-file.ts'
import type { FileFormat, ReadRow } from './file-format.ts'
import { ENCODINGS, headOf, type TextFormat } from './flat-rows.rules.ts'

const CHUNK_BYTES = 1024 * 1024

/** Files of lines. */
export function textFile(format: TextFormat): FileFormat<string> {
  const { header, encode } = ENCODINGS[format]
  return {
    encode,
    async begin(write, like) {
      let waiting = like === null || header === '' ? header : headerOf(like)
      const flush = () => {
        write(Buffer.from(waiting))
        waiting = ''
      }
      return {
        add(lines) {
          waiting += lines
          if (waiting.length >= CHUNK_BYTES) flush()
        },
        end: flush,
      }
    },
    read: (path) => readRows(path, format),
  }
}

/** Reads the first line of a file of CSV. A file of an older version has fewer columns. */
function headerOf(path: string): string {
  const [line = ''] = linesOf(path)
  return `${line}\n`
}

function* readRows(path: string, format: TextFormat): Generator<ReadRow<string>> {
  const { header, goesOn } = ENCODINGS[format]
  let [open, isHeader] = ['', header !== '']
  for (const line of linesOf(path)) {
    const row = `${open}${line}\n`
    open = goesOn(row) ? row : ''
    if (open !== '') continue
    const head = isHeader ? null : headOf(row, format)
    if (head !== null) yield { row, head }
    else if (!isHeader) throw new Error(`${path} has a row that no export has written`)
    isHeader = false
  }
}

function* linesOf(path: string): Generator<string> {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  for (const chunk of chunksOf(path)) {
    const lines = (rest + decoder.write(chunk)).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}

/** Reads a file in pieces. Each is gone when the next one is asked for. */
export function* chunksOf(path: string): Generator<Uint8Array> {
  const file = openRegular(path)
  try {
    const chunk = Buffer.alloc(CHUNK_BYTES)
    for (;;) {
      const read = onFile(path, () => readSync(file, chunk))
      if (read === 0) return
      yield chunk.subarray(0, read)
    }
  } finally {
    closeSync(file)
  }
}
