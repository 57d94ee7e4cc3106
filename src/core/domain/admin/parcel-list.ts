import type { Entry } from '../history/history.ts'
import { isLabelName, type OrderContext, type OrderPart, parseOrderPart } from '../history/order-context.ts'
import type { ParcelState } from '../history/parcel-state.ts'
import { isSeveral, parseIdentifier, parseTypedIdentifier } from '../identifiers.ts'
import { isObject, member } from '../json-body.ts'

/** `overdue`: watched parcels whose poll is due. `unknown`: parcels that are not polled any more, because the carrier knows none of their identifiers. */
export interface StoreCounts {
  readonly parcels: number
  readonly watched: number
  readonly overdue: number
  readonly unknown: number
  readonly quarantined: number
}

/**
 * Selects a page of parcels. With `prefix`: the parcels with an identifier that begins with `prefix`, sorted by identifier. Without it: first the
 * parcels with a next poll, the most overdue first. Then the parcels that are no longer polled, sorted by the reason.
 */
export interface ParcelQuery {
  readonly prefix: string | null
  /** Only the parcels of this order, sorted by their ids. Absent or null: of any. */
  readonly reference?: string | null
  /** The latest status; null: any. */
  readonly status: string | null
  readonly stopped: ParcelState['stopped']
  /** Whether to select only parcels of which the carrier knew no identifier when it was last asked. Absent: all parcels. */
  readonly isUnknown?: boolean
  readonly after: ParcelCursor | null
  readonly limit: number
}

export type ParcelFilter = Pick<ParcelQuery, 'prefix' | 'reference' | 'status' | 'stopped'>

/** How many parcels a filter matches. `more`: only the first of them were counted, so there may be more. */
export interface FilteredCount {
  readonly count: number
  readonly more: boolean
}

/** Where a page of a list of parcels begins: after this parcel, in the order of the list. */
export type ParcelCursor =
  | { readonly by: 'identifier'; readonly value: string }
  | { readonly by: 'reference'; readonly parcelId: number }
  | { readonly by: 'next'; readonly atMs: number; readonly parcelId: number }
  | { readonly by: 'stopped'; readonly reason: NonNullable<ParcelState['stopped']>; readonly parcelId: number }

/** `next` null: this is the last page. */
export interface ParcelPage {
  readonly parcels: readonly ListedParcel[]
  readonly next: ParcelCursor | null
}

export interface ListedParcel {
  readonly state: ParcelState
  readonly order: OrderContext
  readonly identifiers: readonly InspectedIdentifier[]
}

export interface InspectedIdentifier {
  readonly value: string
  readonly isTrackingId: boolean
  /** When the carrier last answered that it does not know the identifier, epoch milliseconds; null: never. */
  readonly refusedAtMs: number | null
}

export interface InspectedParcel extends ListedParcel {
  /** The newest first. */
  readonly entries: readonly Entry[]
  /** The kind of delivery, in the word of the carrier; empty: not known. */
  readonly distributionType: string
}

/** The format of a list of identifiers: one JSON value per line, or comma-separated columns. */
export type WatchListFormat = 'ndjson' | 'csv'

/**
 * A parsed line. `nothing`: the line is empty or names the columns. `bad`: the line has no identifier; `reason` says why, for example "is not
 * valid JSON". `refused`: the whole list cannot be read; `reason` is a sentence that says why, and what to do.
 */
export type WatchLine =
  /** `order`: what the line says of the order; absent: nothing. */
  | { readonly kind: 'identifier'; readonly identifier: string; readonly order?: OrderPart }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'bad'; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string }

export const WATCH_LINES_MAX = 100_000
/** In characters. */
export const WATCH_LINE_LENGTH_MAX = 4096

const NAMES: readonly string[] = ['identifier', 'trackingnumber', 'trackingid']
const SEPARATORS = [',', ';', '\t'] as const
/** How many names of columns a message shows, and how many characters of each. */
const COLUMNS_SHOWN = 20
const COLUMN_LENGTH_SHOWN = 40
const NO_IDENTIFIER = 'is not an identifier: it must be 4 to 40 letters and digits'
const SEVERAL = 'has more than one identifier: write one a line'
const NO_DIGIT = 'has no digit, so it is taken for a column header and not watched; give `column` if the list has a header line'

/**
 * Creates a parser for the lines of one list. Call the parser for each line, in order.
 *
 * NDJSON: a line is a string, or an object with `identifier`. CSV: `column` is the name of the column to read, or its number from 1. Without
 * `column`, the parser reads the column that the first line calls `identifier`, `trackingNumber` or `trackingId`, or the only column. The separator
 * is a comma, semicolon or tab, whichever occurs most often in the first line.
 *
 * `takes`: whether to read what lines say of orders: the members `reference`, `labels` and `note`, or the columns `reference` and `label:NAME`.
 */
export function createWatchLineReader(
  format: WatchListFormat,
  column: string | null = null,
  takes: 'identifiers' | 'orders' = 'identifiers',
): (line: string) => WatchLine {
  const hasOrders = takes === 'orders'
  if (format === 'ndjson') return (line) => (line.trim() === '' ? { kind: 'nothing' } : readJsonLine(line, hasOrders))
  let columns: { readonly separator: string; readonly at: number; readonly orders: OrderColumns } | null = null
  return (line) => {
    if (line.trim() === '') return { kind: 'nothing' }
    if (columns !== null) {
      const cells = splitCells(line, columns.separator)
      return withOrder(readCell(cells?.[columns.at]), orderInCells(cells ?? [], columns.orders))
    }
    const separator = separatorOf(line)
    const cells = splitCells(line, separator)
    if (cells === null) return { kind: 'refused', reason: 'A quote in the first line is not closed.' }
    const found = findColumn(cells, column)
    if (found === null) return { kind: 'refused', reason: describeColumns(cells, column) }
    const first: WatchLine = found.isNamed ? { kind: 'nothing' } : readFirstCell(cells[found.at], column)
    const orders = hasOrders && first.kind === 'nothing' ? findOrderColumns(cells) : NO_ORDERS
    if (typeof orders === 'string') return { kind: 'refused', reason: orders }
    columns = { separator, at: found.at, orders }
    return first
  }
}

/** The columns about orders: the name of a label, or `reference`, with the place of its column. */
type OrderColumns = readonly (readonly [name: string, at: number])[]

const NO_ORDERS: OrderColumns = []
const LABEL_COLUMN = /^label:/i
const REFERENCE = 'reference'

/** Finds the columns about orders in the line that names the columns. A sentence: one of them cannot be read. */
function findOrderColumns(cells: readonly string[]): OrderColumns | string {
  const columns: (readonly [name: string, at: number])[] = []
  for (const [at, cell] of cells.entries()) {
    const isLabel = LABEL_COLUMN.test(cell)
    if (!isLabel && cell.toLowerCase() !== REFERENCE) continue
    const name = isLabel ? cell.replace(LABEL_COLUMN, 'label:') : REFERENCE
    const shown = JSON.stringify(cell.slice(0, COLUMN_LENGTH_SHOWN))
    if (isLabel && !isLabelName(name.slice('label:'.length)))
      return `The column ${shown} names no label: a name has 1 to 32 of the characters a-z, 0-9 and -.`
    if (columns.some(([known]) => known === name)) return `Two columns are named ${shown}.`
    columns.push([name, at])
  }
  return columns
}

/** Returns what the cells of a line say of an order. An empty cell says nothing. */
function orderInCells(cells: readonly string[], columns: OrderColumns): object {
  const said = columns.flatMap(([name, at]) => {
    // Spreadsheets write a number so, and other texts may hold the same characters.
    const text = cells[at]?.replace(/^="(.*)"$|^=(?=\d+$)/s, '$1') ?? ''
    return text === '' ? [] : [[name, text] as const]
  })
  const labels = said.filter(([name]) => name !== REFERENCE).map(([name, text]) => [name.slice('label:'.length), text] as const)
  const reference = said.find(([name]) => name === REFERENCE)?.[1]
  return { ...(reference === undefined ? {} : { reference }), ...(labels.length === 0 ? {} : { labels: Object.fromEntries(labels) }) }
}

function withOrder(line: WatchLine, members: object): WatchLine {
  if (line.kind !== 'identifier') return line
  const order = parseOrderPart(members)
  if (typeof order === 'string') return { kind: 'bad', reason: order }
  return Object.values(order).every((value) => value === undefined) ? line : { ...line, order }
}

/** Finds the column to read in the first line; null: there is none. `isNamed`: this line names the columns, so it has no data. */
function findColumn(cells: readonly string[], column: string | null): { readonly at: number; readonly isNamed: boolean } | null {
  const isWanted = (cell: string): boolean =>
    column === null ? NAMES.includes(cell.toLowerCase().replace(/[^a-z]/g, '')) : cell.toLowerCase() === column.trim().toLowerCase()
  const named = cells.findIndex(isWanted)
  if (named >= 0) return { at: named, isNamed: true }
  if (column === null) return cells.length === 1 ? { at: 0, isNamed: false } : null
  const at = /^\d{1,4}$/.test(column) ? Number(column) - 1 : -1
  return at >= 0 && at < cells.length ? { at, isNamed: false } : null
}

/** Reads the cell of the first line. A cell without digits is taken for the name of the column, because tracking numbers have digits. */
function readFirstCell(cell: string | undefined, column: string | null): WatchLine {
  if (cell === undefined || /\d/.test(cell)) return readCell(cell)
  return column === null ? { kind: 'bad', reason: NO_DIGIT } : { kind: 'nothing' }
}

function describeColumns(cells: readonly string[], column: string | null): string {
  const seen = cells.slice(0, COLUMNS_SHOWN).map((cell) => JSON.stringify(cell.slice(0, COLUMN_LENGTH_SHOWN)))
  const more = cells.length > COLUMNS_SHOWN ? `, and ${cells.length - COLUMNS_SHOWN} more` : ''
  const missing = column === null ? 'No column is named identifier, trackingNumber or trackingId' : 'There is no such column'
  return `${missing}. Give the name or the number of one as \`column\`. The first line has ${seen.join(', ')}${more}.`
}

function separatorOf(line: string): string {
  const count = (separator: string): number => splitCells(line, separator)?.length ?? 0
  return SEPARATORS.reduce((best, one) => (count(one) > count(best) ? one : best))
}

function readJsonLine(line: string, hasOrders: boolean): WatchLine {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return { kind: 'bad', reason: 'is not valid JSON' }
  }
  const read = lineOf(parseIdentifier(isObject(value) ? member(value, 'identifier') : value))
  return hasOrders && isObject(value) ? withOrder(read, value) : read
}

/** Spreadsheets write `="00123"` to preserve the zeros of a number. */
function textOfCell(cell: string | undefined): string {
  return cell?.replace(/^="?|"$/g, '') ?? ''
}

function readCell(cell: string | undefined): WatchLine {
  const text = textOfCell(cell)
  return isSeveral(text) ? { kind: 'bad', reason: SEVERAL } : lineOf(parseTypedIdentifier(text))
}

function lineOf(identifier: string | null): WatchLine {
  return identifier === null ? { kind: 'bad', reason: NO_IDENTIFIER } : { kind: 'identifier', identifier }
}

/** Splits a line into cells (RFC 4180, without line breaks in cells). Null: a quote is not closed. */
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

/**
 * Creates a decoder for a list. A list that begins with the byte order mark of UTF-16 is decoded as UTF-16 ("Unicode text" of spreadsheets), any
 * other list as UTF-8. The mark is dropped.
 */
export function createListDecoder() {
  let decoder: InstanceType<typeof TextDecoder> | null = null
  let start: Uint8Array = new Uint8Array()

  function begin(): string {
    decoder = new TextDecoder(encodingOf(start))
    return decoder.decode(start, { stream: true })
  }

  return {
    /** Returns the text of a piece. A character that is cut off at its end is returned with the next piece. */
    write(bytes: Uint8Array) {
      if (decoder !== null) return decoder.decode(bytes, { stream: true })
      const joined = new Uint8Array(start.length + bytes.length)
      joined.set(start)
      joined.set(bytes, start.length)
      start = joined
      return start.length < 2 ? '' : begin()
    },
    /** Returns the rest of the text, after the last piece. */
    end() {
      const text = decoder === null ? begin() : ''
      return text + (decoder?.decode() ?? '')
    },
  }
}

function encodingOf([first, second]: Uint8Array): string {
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  return first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8'
}
