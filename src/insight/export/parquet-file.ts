import { asyncBufferFromFile, parquetMetadataAsync, parquetRead, type SchemaElement } from 'hyparquet'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import type { FileFormat, ReadRow } from './file-format.ts'
import { COLUMNS, type ColumnType, type FlatRow } from './flat-rows.rules.ts'

const TEXT: Partial<SchemaElement> = { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } }

const TYPES: Readonly<Record<ColumnType, Partial<SchemaElement>>> = {
  integer: { type: 'INT64' },
  boolean: { type: 'BOOLEAN' },
  string: TEXT,
  json: TEXT,
  timestamp: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  },
}

const ELEMENTS: readonly SchemaElement[] = [
  { name: 'events', num_children: COLUMNS.length },
  ...COLUMNS.map(({ name, type }): SchemaElement => ({ name, repetition_type: 'OPTIONAL', ...TYPES[type] })),
]

/** What is held in memory: a group of rows ends with the row that brings it to one of these. */
const GROUP = { rows: 10_000, chars: 32 * 1024 * 1024 }

/** Values of a row by the types of its file. */
type Row = readonly unknown[]

/** Files of Parquet. Only an export into such files loads this module and its libraries. */
export const parquetFile: FileFormat<Row> = {
  encode: (row) => row.map(typed),
  async begin(write, like) {
    const schema = like === null ? ELEMENTS : (await openParquet(like)).metadata.schema
    const writer = new ByteWriter()
    const file = new ParquetWriter({ writer, schema: [...schema], createdBy: 'parcel-relay' })
    let [rows, chars]: [Row[], number] = [[], 0]
    const flush = () => {
      write(writer.getBytes())
      writer.index = 0
    }
    const endGroup = () => {
      const columnData = schema.slice(1).map(({ name }, at) => ({ name, data: rows.map((row) => row[at]) }))
      void file.write({ columnData, rowGroupSize: GROUP.rows })
      rows = []
      chars = 0
      flush()
    }
    return {
      add(row) {
        rows.push(row)
        for (const value of row) if (typeof value === 'string') chars += value.length
        if (rows.length >= GROUP.rows || chars >= GROUP.chars) endGroup()
      },
      end() {
        if (rows.length > 0) endGroup()
        void file.finish()
        flush()
      },
    }
  },
  async *read(path) {
    const { file, metadata } = await openParquet(path)
    let rowStart = 0
    for (const group of metadata.row_groups) {
      const rowEnd = rowStart + Number(group.num_rows)
      let rows: readonly Row[] = []
      const onComplete = (read: readonly Row[]) => {
        rows = read
      }
      await parquetRead({ file, metadata, rowStart, rowEnd, parsers: PARSERS, onComplete })
      yield* rows.map(withHead)
      rowStart = rowEnd
    }
  },
}

/** The library's own reader of texts drops a leading U+FEFF. */
const PARSERS = { stringFromBytes: (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString() }

async function openParquet(path: string) {
  const file = await asyncBufferFromFile(path)
  return { file, metadata: await parquetMetadataAsync(file) }
}

function typed(value: FlatRow[number], at: number): unknown {
  if (typeof value === 'number') return BigInt(value)
  return value !== null && COLUMNS[at]?.type === 'timestamp' ? new Date(String(value)) : value
}

function withHead(row: Row): ReadRow<Row> {
  const [sequence, , kind, parcelId, joined] = row
  const joinedParcelId = typeof joined === 'string' ? joined : null
  return { row, head: { sequence: Number(sequence), kind: String(kind), parcelId: String(parcelId), joinedParcelId } }
}
