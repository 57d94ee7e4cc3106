import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ExportFolder, openExportFolder } from '../../../src/insight/export/export-folder.ts'
import { COLUMNS, type Format } from '../../../src/insight/export/flat-rows.rules.ts'
import { type Manifest, parseManifest } from '../../../src/insight/export/manifest.rules.ts'
import { queryDuckDb } from './duckdb.ts'

/** Works in a folder of exports, which no other export uses meanwhile. */
export async function inFolder<T>(directory: string, work: (folder: ExportFolder) => Promise<T> | T): Promise<T> {
  const folder = openExportFolder(directory, true)
  try {
    return await work(folder)
  } finally {
    folder.close()
  }
}

export function manifestIn(folder: string): Manifest {
  const path = join(folder, 'manifest.json')
  return parseManifest(readFileSync(path, 'utf8'), path)
}

/** Says what is wrong with the files of a folder, whatever they hold; empty: nothing. */
export function faultsIn(folder: string): readonly string[] {
  const { files } = manifestIn(folder)
  const known = new Set(['manifest.json', 'export.lock', ...files.map(({ name }) => name)])
  const strangers = readdirSync(folder).filter((name) => !known.has(name))
  const wrong = files.filter(({ name, bytes, sha256 }) => {
    const content = readFileSync(join(folder, name))
    return content.byteLength !== bytes || createHash('sha256').update(content).digest('hex') !== sha256
  })
  return [...strangers.map((name) => `${name} is no file of the manifest`), ...wrong.map(({ name }) => `${name} is not as written`)]
}

const SQL_TYPES = { integer: 'BIGINT', string: 'VARCHAR', boolean: 'BOOLEAN', timestamp: 'VARCHAR', json: 'VARCHAR' } as const

/** Reads the rows of all files that the manifest names with DuckDB, in their order. Values are as `flatRows` gives them. */
export async function rowsIn(folder: string): Promise<readonly (readonly unknown[])[]> {
  const { files, format } = manifestIn(folder)
  if (files.length === 0) return []
  const list = files.map(({ name }) => `'${join(folder, name)}'`).join(', ')
  const columns = COLUMNS.map(({ name, type }) => `${name}: '${SQL_TYPES[type]}'`).join(', ')
  const rows = await queryDuckDb(`select * from ${READERS[format](list, columns)} order by sequence, part`)
  return rows.map((row) => COLUMNS.map(({ name }) => row[name] ?? null))
}

/** Files of an older version have fewer columns, which are padded. */
export const CSV_OPTIONS =
  "auto_detect = false, header = true, null_padding = true, parallel = false, nullstr = '', allow_quoted_nulls = false"

const TIMES = COLUMNS.filter(({ type }) => type === 'timestamp').map(({ name }) => name)
const AS_TEXT = TIMES.map((name) => `strftime(make_timestamp_ms(epoch_ms(${name})), '%Y-%m-%dT%H:%M:%S.%gZ') as ${name}`)

/** What rows are selected from. */
const READERS: Readonly<Record<Format, (files: string, columns: string) => string>> = {
  ndjson: (files, columns) => `read_json([${files}], format = 'newline_delimited', columns = {${columns}})`,
  csv: (files, columns) => `read_csv([${files}], ${CSV_OPTIONS}, columns = {${columns}})`,
  parquet: (files) => `(select * replace (${AS_TEXT.join(', ')}) from read_parquet([${files}], union_by_name = true))`,
}

/** Says how a file of Parquet is made: the types of its columns as DuckDB names them, and the rows of its groups. */
export async function parquetSchemaOf(path: string) {
  const columns = await queryDuckDb(`select column_name as name, column_type as type from (describe select * from read_parquet('${path}'))`)
  const groups = await queryDuckDb(
    `select distinct row_group_id, row_group_num_rows as rows from parquet_metadata('${path}') order by row_group_id`,
  )
  return { types: Object.fromEntries(columns.map(({ name, type }) => [name, type])), groups: groups.map(({ rows }) => rows) }
}
