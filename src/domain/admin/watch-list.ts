import { parseIdentifier } from '../identifiers.ts'
import { isObject, member } from '../json-body.ts'

/** The format of a list of identifiers: one JSON value per line, or comma-separated columns. */
export type WatchListFormat = 'ndjson' | 'csv'

/**
 * A parsed line. `nothing`: it is empty or names the columns. `bad`: it is no identifier; `reason` is a predicate such as "is not valid
 * JSON".
 */
export type WatchLine =
  | { readonly kind: 'identifier'; readonly identifier: string }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'bad'; readonly reason: string }

/** The maximum of lines in a list. */
export const WATCH_LINES_MAX = 100_000
/** The maximum of characters in a line. */
export const WATCH_LINE_LENGTH_MAX = 4096

const NAMES: readonly string[] = ['identifier', 'trackingnumber', 'trackingid']
const NO_IDENTIFIER = 'is not an identifier: it must be 4 to 40 letters and digits'

/**
 * Creates a parser for the lines of one list, to be called in order. NDJSON: a string, or an object with `identifier`. CSV: the column that
 * the first line names `identifier`, `trackingNumber` or `trackingId`, else the first column. Columns are separated by commas, or by
 * semicolons if the first line has no comma.
 */
export function createWatchLineReader(format: WatchListFormat): (line: string) => WatchLine {
  if (format === 'ndjson') return (line) => (line.trim() === '' ? { kind: 'nothing' } : readJsonLine(line))
  let columns: { readonly separator: string; readonly at: number } | null = null
  return (line) => {
    if (line.trim() === '') return { kind: 'nothing' }
    if (columns !== null) return readCell(splitCells(line, columns.separator)?.[columns.at])
    const separator = line.includes(',') ? ',' : ';'
    const cells = splitCells(line, separator)
    const named = cells?.findIndex((cell) => NAMES.includes(cell.toLowerCase().replace(/[^a-z]/g, ''))) ?? -1
    columns = { separator, at: Math.max(0, named) }
    return named >= 0 ? { kind: 'nothing' } : readCell(cells?.[0])
  }
}

function readJsonLine(line: string): WatchLine {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return { kind: 'bad', reason: 'is not valid JSON' }
  }
  return readCell(isObject(value) ? member(value, 'identifier') : value)
}

function readCell(cell: unknown): WatchLine {
  const identifier = parseIdentifier(cell)
  return identifier === null ? { kind: 'bad', reason: NO_IDENTIFIER } : { kind: 'identifier', identifier }
}

/** Splits a line into cells (RFC 4180, without line breaks in cells); null: a quote is not closed. */
function splitCells(line: string, separator: string): readonly string[] | null {
  const cells: string[] = []
  let cell = ''
  let quoted = false
  for (let at = 0; at < line.length; at++) {
    const character = line.charAt(at)
    if (character === '"' && quoted && line.charAt(at + 1) === '"') {
      cell += '"'
      at += 1
    } else if (character === '"') quoted = !quoted
    else if (character === separator && !quoted) {
      cells.push(cell.trim())
      cell = ''
    } else cell += character
  }
  return quoted ? null : [...cells, cell.trim()]
}
