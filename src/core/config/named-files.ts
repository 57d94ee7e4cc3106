import { readRegular } from '../../regular-file.ts'
import { parseSource, valuesOf } from './source.ts'

/** A file that a setting names. */
export interface NamedFile {
  readonly what: string
  readonly path: string
}

const SETTINGS = new Set(['file', 'certFile', 'keyFile', 'caFile'])
const STORE = /^sqlite:(\S.*)$/
/** The endings of the store's files that a start tests. */
const STORE_SUFFIXES = ['', '-wal', '.marker', '.lock', '.key', '.tombstones', '.unstored']

/**
 * Lists the files that a config names, including secrets and the store, so that a start can test whether they can be opened. The list is empty if the
 * config cannot be read. Loading the config then reports the reason.
 */
export function filesNamedIn(configFile: string): readonly NamedFile[] {
  try {
    const source = parseSource(readRegular(configFile).toString())
    const read = source.readable ? valuesOf(source) : { values: null }
    return 'values' in read ? [...namedIn(read.values, [])] : []
  } catch {
    return []
  }
}

function* namedIn(value: unknown, path: readonly string[]): Generator<NamedFile> {
  if (typeof value === 'string') yield* namedBy(path, value)
  else if (typeof value === 'object' && value !== null)
    for (const [key, member] of Object.entries(value)) yield* namedIn(member, [...path, key])
}

function* namedBy(path: readonly string[], text: string): Generator<NamedFile> {
  const what = path.join('.')
  const [, storePath] = what === 'store' ? (STORE.exec(text) ?? []) : []
  if (storePath !== undefined) for (const suffix of STORE_SUFFIXES) yield { what, path: `${storePath}${suffix}` }
  else if (SETTINGS.has(path.at(-1) ?? '')) yield { what, path: text }
}
