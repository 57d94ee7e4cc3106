import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { createListDecoder } from '../../domain/admin/list-decoder.ts'
import { createWatchLineReader } from '../../domain/admin/watch-list.ts'

/** A part of a list, sent in one request. */
export interface ListPart {
  readonly type: string
  readonly text: string
  /** Parameters of the request. */
  readonly query: readonly string[]
  /** The number of lines of the file in this part. */
  readonly lines: number
  /** Converts the number of a line in this part to its number in the file. Both count from 1. */
  readonly lineOf: (line: number) => number
  readonly isLast: boolean
}

/** Lines per request; small enough to show progress. */
export const LINES_AT_ONCE = 5000

/** Sends a file of identifiers in parts, one after the other. If the first line of a CSV file names the columns, every part repeats it. */
export async function sendList(file: string, column: string | undefined, send: (part: ListPart) => Promise<void>): Promise<void> {
  const type = file.toLowerCase().endsWith('.csv') ? 'text/csv' : 'application/x-ndjson'
  const query = column === undefined ? [] : [`column=${encodeURIComponent(column)}`]
  let header = ''
  let namesColumns = false
  let sent = 0
  const sendPart = async (lines: readonly string[], isLast: boolean) => {
    const repeated = namesColumns && sent > 0
    const before = sent - (repeated ? 1 : 0)
    const text = (repeated ? [header, ...lines] : lines).join('\n')
    await send({ type, text, query, lines: lines.length, lineOf: (line) => before + line, isLast })
    sent += lines.length
  }
  let part: string[] = []
  for await (const line of createInterface({ input: Readable.from(decoded(file)), crlfDelay: Infinity })) {
    if (header === '') {
      header = line
      namesColumns = type === 'text/csv' && createWatchLineReader('csv', column ?? null)(line).kind === 'nothing'
    }
    part.push(line)
    if (part.length > LINES_AT_ONCE) {
      await sendPart(part.slice(0, LINES_AT_ONCE), false)
      part = part.slice(LINES_AT_ONCE)
    }
  }
  if (part.length > 0) await sendPart(part, true)
}

/** Decodes the text of a list. A spreadsheet may have saved it as UTF-16. */
async function* decoded(file: string): AsyncGenerator<string> {
  const decoder = createListDecoder()
  for await (const chunk of createReadStream(file)) if (chunk instanceof Uint8Array) yield decoder.write(chunk)
  yield decoder.end()
}
