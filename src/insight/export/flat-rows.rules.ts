import { parseKeepingNumbers } from '../../core/domain/json-body.ts'

/** An entry, as the feed shows it (docs/feed.md). */
interface FeedEntry {
  readonly id: number
  readonly status: string
  readonly detailedStatus: string
  readonly eventTimestamp: string
  readonly location: string
  readonly displayToConsumer: boolean
  readonly texts: object
  readonly extra: object
}

interface FeedParcel {
  readonly id: string
  readonly identifiers: readonly string[]
  readonly trackingIds: readonly string[]
  readonly distributionType: string
  readonly history: readonly number[]
  readonly extra: object
  readonly reference?: string | undefined
  readonly labels?: object | undefined
}

/** An event of the feed of any kind. */
export interface FeedEvent {
  readonly sequence: number
  readonly kind: string
  /** Of a parcel that is gone only the id. */
  readonly parcel: FeedParcel | { readonly id: string }
  readonly entry?: FeedEntry | null
  readonly united?: readonly number[] | undefined
  readonly joined?: { readonly id: string; readonly identifiers: readonly string[] }
  readonly entries?: readonly FeedEntry[]
  /** Of `stalled` and `recovered`, if it is still known. */
  readonly watchdog?: { readonly rule: string; readonly since: string; readonly checked: boolean } | undefined
}

/** The formats whose files are lines of text. */
export const TEXT_FORMATS = ['ndjson', 'csv'] as const
export type TextFormat = (typeof TEXT_FORMATS)[number]
export const FORMATS = [...TEXT_FORMATS, 'parquet'] as const
export type Format = (typeof FORMATS)[number]

/** Goes up when a column is renamed or removed, or means something else. A new column at the end leaves it. */
export const SCHEMA = 1

/** How a column is read: `json` is a text that holds JSON. */
export type ColumnType = 'integer' | 'string' | 'boolean' | 'timestamp' | 'json'

/** The columns in order. What `headOf` reads comes first. */
export const COLUMNS: readonly { readonly name: string; readonly type: ColumnType }[] = [
  { name: 'sequence', type: 'integer' },
  { name: 'part', type: 'integer' },
  { name: 'kind', type: 'string' },
  { name: 'parcel_id', type: 'string' },
  { name: 'joined_parcel_id', type: 'string' },
  { name: 'identifiers', type: 'json' },
  { name: 'tracking_ids', type: 'json' },
  { name: 'distribution_type', type: 'string' },
  { name: 'history', type: 'json' },
  { name: 'entry_id', type: 'string' },
  { name: 'status', type: 'string' },
  { name: 'detailed_status', type: 'string' },
  { name: 'event_timestamp', type: 'timestamp' },
  { name: 'location', type: 'string' },
  { name: 'display_to_consumer', type: 'boolean' },
  { name: 'texts', type: 'json' },
  { name: 'united', type: 'json' },
  { name: 'joined_identifiers', type: 'json' },
  { name: 'parcel_extra', type: 'json' },
  { name: 'entry_extra', type: 'json' },
  { name: 'reference', type: 'string' },
  { name: 'labels', type: 'json' },
  { name: 'watchdog_rule', type: 'string' },
  { name: 'watchdog_since', type: 'timestamp' },
  { name: 'watchdog_checked', type: 'boolean' },
]

type Value = string | number | boolean | null

/** The values of a row, in the order of `COLUMNS`. */
export type FlatRow = readonly Value[]

/** Turns an event of the feed into a row, and an event of a join also into a row for each entry that the parcel has then. */
export function flatRows(event: FeedEvent): readonly FlatRow[] {
  const { sequence, kind, parcel, entry = null, united, joined, entries = [], watchdog } = event
  const begin = [sequence, 0, kind, parcel.id] as const
  if (!('identifiers' in parcel)) return [[...begin, null, ...NO_PARCEL, ...NO_ENTRY, null, null, null, null, ...NO_ORDER, ...NO_WATCHDOG]]
  const { identifiers, trackingIds, distributionType, history, extra, reference = null, labels } = parcel
  const ofParcel = [JSON.stringify(identifiers), JSON.stringify(trackingIds), distributionType, idList(history)]
  const ofJoin = [united === undefined ? null : idList(united), joined === undefined ? null : JSON.stringify(joined.identifiers)]
  const extras = [JSON.stringify(extra), entry === null ? null : JSON.stringify(entry.extra)]
  const ofOrder = [reference, labels === undefined ? null : JSON.stringify(labels)]
  const ofWatchdog = watchdog === undefined ? NO_WATCHDOG : [watchdog.rule, watchdog.since, watchdog.checked]
  return [
    [...begin, joined?.id ?? null, ...ofParcel, ...entryValues(entry), ...ofJoin, ...extras, ...ofOrder, ...ofWatchdog],
    ...entries.map((one, at): FlatRow => {
      const nth = [sequence, at + 1, 'join_entry', parcel.id] as const
      return [...nth, null, ...NO_PARCEL, ...entryValues(one), null, null, null, JSON.stringify(one.extra), ...NO_ORDER, ...NO_WATCHDOG]
    }),
  ]
}

const NO_PARCEL = [null, null, null, null] as const
const NO_ORDER = [null, null] as const
const NO_WATCHDOG = [null, null, null] as const
const NO_ENTRY = [null, null, null, null, null, null, null] as const

function entryValues(entry: FeedEntry | null): FlatRow {
  if (entry === null) return NO_ENTRY
  const { id, status, detailedStatus, eventTimestamp, location, displayToConsumer, texts } = entry
  return [String(id), status, detailedStatus, eventTimestamp, location, displayToConsumer, JSON.stringify(texts)]
}

function idList(ids: readonly number[]): string {
  return ids.length === 0 ? '[]' : `["${ids.join('","')}"]`
}

/** The first columns of a written row. */
export interface RowHead {
  readonly sequence: number
  readonly kind: string
  readonly parcelId: string
  /** Null: the row is not that of a join. */
  readonly joinedParcelId: string | null
}

interface Encoding {
  /** The first lines of each file. */
  readonly header: string
  /** Encodes a row, with the end of its line. */
  readonly encode: (row: FlatRow) => string
  /** Whether a record goes on after these lines. */
  readonly goesOn: (lines: string) => boolean
  /** Matches the head of a record. */
  readonly head: RegExp
}

const MEMBERS = COLUMNS.map(({ name }, at) => `${at === 0 ? '{' : ','}"${name}":`)

export const ENCODINGS: Readonly<Record<TextFormat, Encoding>> = {
  ndjson: {
    header: '',
    encode(row) {
      let text = ''
      for (const [at, value] of row.entries()) text += `${MEMBERS[at] ?? ''}${typeof value === 'string' ? JSON.stringify(value) : value}`
      return `${text}}\n`
    },
    goesOn: () => false,
    head: /^\{"sequence":(\d+),"part":\d+,"kind":"(\w+)","parcel_id":"(\d+)","joined_parcel_id":(?:null|"(\d+)"),/,
  },
  csv: {
    header: `${COLUMNS.map(({ name }) => name).join(',')}\n`,
    encode: (row) => `${row.map(csvValue).join(',')}\n`,
    goesOn: (lines) => lines.split('"').length % 2 === 0,
    head: /^(\d+),\d+,(\w+),(\d+),(\d*),/,
  },
}

const PLAIN = /^[\w.:+-]+$/

/** A null is nothing, and an empty text is a pair of quotes. */
function csvValue(value: Value): string {
  if (value === null) return ''
  return typeof value !== 'string' || PLAIN.test(value) ? String(value) : `"${value.replaceAll('"', '""')}"`
}

/** Reads the head of a record; null: it is none of ours. */
export function headOf(record: string, format: TextFormat): RowHead | null {
  const [whole, sequence, kind = '', parcelId = '', joined = ''] = ENCODINGS[format].head.exec(record) ?? []
  return whole === undefined ? null : { sequence: Number(sequence), kind, parcelId, joinedParcelId: joined === '' ? null : joined }
}

/** Gathers from the heads of all rows which parcels were erased, with those that were joined to them before. */
export function createErasedParcels() {
  const erased = new Set<string>()
  const into = new Map<string, string>()
  return {
    add({ kind, parcelId, joinedParcelId }: RowHead): void {
      if (kind === 'erased') erased.add(parcelId)
      if (joinedParcelId !== null) into.set(joinedParcelId, parcelId)
    },
    count: () => erased.size,
    /** Whether a row must go. The row that says that a parcel was erased stays. */
    removes({ kind, parcelId }: RowHead): boolean {
      if (kind === 'erased' || erased.size === 0) return false
      for (let id: string | undefined = parcelId; id !== undefined; id = into.get(id)) if (erased.has(id)) return true
      return false
    },
  }
}

/** Parses a page of the feed. The carrier's own members keep their numbers as they were received. */
export function parsePage(text: string): unknown {
  const page: unknown = JSON.parse(text)
  if (text.includes('"extra":{"')) takeExtras(page, parseKeepingNumbers(text))
  return page
}

/** Takes the members `extra`, at any depth, from another reading of the same text. */
function takeExtras(into: unknown, exact: unknown): void {
  if (typeof into !== 'object' || into === null || typeof exact !== 'object' || exact === null) return
  const members: readonly [string, unknown][] = Object.entries(exact)
  for (const [name, value] of members) {
    if (name === 'extra') Object.assign(into, { extra: value })
    else takeExtras(Reflect.get(into, name), value)
  }
}
