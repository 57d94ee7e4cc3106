import { createReadStream, statSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { createListDecoder, createWatchLineReader } from '../../../core/domain/admin/watch-list.ts'
import { createProgressLine, type Screen } from './progress-line.ts'

export interface ListPart {
  readonly type: string
  readonly text: string
  /** Query parameters, each as `name=value`. */
  readonly query: readonly string[]
  /** The number of lines of the file in this part, without a repeated header. */
  readonly lines: number
  /** Converts the number of a line in this part to its number in the file. Both count from 1. */
  readonly lineOf: (line: number) => number
}

export interface ListToSend {
  readonly file: string
  /** The column of a CSV file to read; undefined: the relay looks for a column with a usual name. */
  readonly column: string | undefined
  /** Names the work for the progress bar. */
  readonly step: string
}

/** Parts are small, so that progress shows between them. */
const LINES_AT_ONCE = 5000

/**
 * Sends a file of identifiers in parts, one after the other. If the first line of a CSV file names the columns, every part begins with that line. If
 * there may be more than one part, progress is shown.
 */
export async function sendList(
  { file, column, step }: ListToSend,
  send: (part: ListPart) => Promise<void>,
  screen: Screen = process.stderr,
): Promise<void> {
  const type = file.toLowerCase().endsWith('.csv') ? 'text/csv' : 'application/x-ndjson'
  const query = column === undefined ? [] : [`column=${encodeURIComponent(column)}`]
  let header = ''
  let namesColumns = false
  let sent = 0
  const total = await countLines(file)
  const progress = total === null || total > LINES_AT_ONCE ? createProgressLine(screen) : null
  const show = () => progress?.show(step, sent, total ?? 0, 'lines')
  const sendPart = async (lines: readonly string[]) => {
    const repeated = namesColumns && sent > 0
    const before = sent - (repeated ? 1 : 0)
    const text = (repeated ? [header, ...lines] : lines).join('\n')
    show()
    await send({ type, text, query, lines: lines.length, lineOf: (line) => before + line }).catch((error: unknown) => {
      progress?.end()
      throw error
    })
    sent += lines.length
    show()
  }
  let part: string[] = []
  for await (const line of linesOf(file)) {
    if (header === '') {
      header = line
      namesColumns = type === 'text/csv' && createWatchLineReader('csv', column ?? null)(line).kind === 'nothing'
    }
    part.push(line)
    if (part.length > LINES_AT_ONCE) {
      await sendPart(part.slice(0, LINES_AT_ONCE))
      part = part.slice(LINES_AT_ONCE)
    }
  }
  if (part.length > 0) await sendPart(part)
  progress?.end()
}

/** Null: the file is a pipe, for example, and counting its lines would use them up. */
async function countLines(file: string): Promise<number | null> {
  if (!statSync(file).isFile()) return null
  let count = 0
  for await (const _ of linesOf(file)) count += 1
  return count
}

function linesOf(file: string) {
  return createInterface({ input: Readable.from(decoded(file)), crlfDelay: Infinity })
}

/** A spreadsheet may have saved the list as UTF-16. */
async function* decoded(file: string): AsyncGenerator<string> {
  const decoder = createListDecoder()
  for await (const chunk of createReadStream(file)) if (chunk instanceof Uint8Array) yield decoder.write(chunk)
  yield decoder.end()
}
