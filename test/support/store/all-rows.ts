import { readFileSync } from 'node:fs'
import { storedRows } from './stored-rows.ts'

const ROW_FILES = ['', '-wal']

/** Returns the tables of a store that contain any of these words in any column, as bytes or as text. */
export async function tablesThatHold(place: string, words: readonly string[]): Promise<readonly string[]> {
  const found: string[] = []
  for await (const [table, text] of textsOfTables(place)) {
    const upper = text.toUpperCase()
    for (const word of words) if (upper.includes(word.toUpperCase())) found.push(`${table}: ${word}`)
  }
  return found
}

/** Yields all rows of each table as one text, with bytes decoded as Latin-1. */
export async function* textsOfTables(place: string): AsyncGenerator<readonly [table: string, text: string]> {
  for (const table of await tableNames(place)) {
    const rows = await storedRows<object>(place, `select * from "${table}"`)
    yield [table, rows.map((row) => Object.values(row).map(textOf).join(' ')).join('\n')]
  }
}

/** Returns the files of an SQLite store whose raw bytes contain any of these words. */
export function filesThatHold(place: string, words: readonly string[]): readonly string[] {
  return ROW_FILES.flatMap((suffix) => {
    const text = readFileSync(`${place}${suffix}`).toString('latin1').toUpperCase()
    return words.filter((word) => text.includes(word.toUpperCase())).map((word) => `${suffix === '' ? 'database' : suffix}: ${word}`)
  })
}

async function tableNames(place: string): Promise<readonly string[]> {
  const query = place.startsWith('postgres://')
    ? "select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'"
    : "select name from sqlite_master where type = 'table'"
  return (await storedRows<{ readonly name: string }>(place, query)).map(({ name }) => name)
}

function textOf(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value)
}
