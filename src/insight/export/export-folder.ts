import { createHash } from 'node:crypto'
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, readSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { lockStore, StoreInUse } from '../../core/store/sqlite/lock.ts'
import { FILE_MODE, FOLDER_MODE, syncFolder, writeAll, writeWhole } from '../../core/store/sqlite/whole-file.ts'
import { isThere, onFile, openRegular, readRegular } from '../../regular-file.ts'
import { ENCODINGS, type Format, headOf, type RowHead, SCHEMA } from './flat-rows.rules.ts'
import { type ExportedFile, leftoversIn, type Manifest, nameOf, parseManifest } from './manifest.rules.ts'

const MANIFEST = 'manifest.json'
const PART = 'next.part'
const CHUNK_BYTES = 1024 * 1024

/** A folder with exported files that only this process may change, until it is closed. */
export interface ExportFolder {
  /** Null: nothing was exported to this folder yet. */
  readonly manifest: () => Manifest | null
  /** Begins a file, with the columns of `like` if it takes rows from there. Only one can be written at a time. It counts once a saved manifest names it. */
  begin(format: Format, like?: ExportedFile): ExportWriter
  /** Replaces the manifest, then deletes the files that it no longer names. */
  save(manifest: Manifest): void
  /** Reads the records of a file with their heads. Throws if the file is not the one that the manifest describes. */
  records(file: ExportedFile): Generator<{ readonly record: string; readonly head: RowHead }>
  close(): void
}

export interface ExportWriter {
  readonly rows: () => number
  /** Adds whole lines with this many rows, of events in the order of their sequences. */
  add(lines: string, rows: number, sequence: number): void
  /** Puts the file in its place. Null: it has no rows, and is gone. `knownTo`: the last sequence that the relay had given when the rows were read. */
  finish(knownTo: number): ExportedFile | null
  discard(): void
}

/**
 * Opens a folder for an export. Deletes what an export that was killed has left. Throws if another export is at
 * work there, if the folder cannot be written to, or if files are missing that the manifest names. `isMade`: whether a missing folder is made.
 */
export function openExportFolder(directory: string, isMade: boolean): ExportFolder {
  // The folders above it must be there: making them too never ends where the system denies that they can be missing, as in /proc.
  if (isMade && !isThere(directory)) mkdirSync(directory, { mode: FOLDER_MODE })
  const lock = lockFolder(directory)
  const path = (name: string) => join(directory, name)
  try {
    let manifest = readManifest(directory)
    refuseLosses(directory, manifest)
    removeLeftovers(directory, manifest)
    return {
      manifest: () => manifest,
      begin: (format, like) =>
        beginFile(directory, format, like === undefined ? ENCODINGS[format].header : headerOf(path(like.name), format)),
      save(next) {
        writeWhole(path(MANIFEST), `${JSON.stringify(next, null, 2)}\n`)
        manifest = next
        removeLeftovers(directory, next)
      },
      records: (file) => recordsOf(path(file.name), file),
      close() {
        try {
          // If the last manifest could not be synced, either may be there after a power cut, so the files of both stay.
          removeLeftovers(directory, manifest, readManifest(directory))
        } finally {
          lock.release()
        }
      },
    }
  } catch (error) {
    lock.release()
    throw error
  }
}

function lockFolder(directory: string) {
  try {
    return lockStore(join(directory, 'export'))
  } catch (error) {
    if (!(error instanceof StoreInUse)) throw error
    const who = error.pid === null ? '' : `, pid ${error.pid}`
    throw new Error(`another export is at work in ${directory}${who}: wait until it has ended`, { cause: error })
  }
}

/** Throws if files are gone or others than the manifest says, so that nobody goes on with an export that has holes. */
function refuseLosses(directory: string, manifest: Manifest | null): void {
  const left = readdirSync(directory).filter((name) => name.startsWith('events-'))
  if (manifest === null && left.length > 0)
    throw new Error(`${directory} has exported files, but no ${MANIFEST}: bring it back, or export into a new folder`)
  for (const { name, bytes } of manifest?.files ?? []) {
    const found = statSync(join(directory, name), { throwIfNoEntry: false })
    if (found?.size === bytes) continue
    const what = found === undefined ? 'is missing' : `has ${found.size} bytes instead of ${bytes}`
    throw new Error(`${join(directory, name)} ${what}: bring back a copy, or export into a new folder`)
  }
}

function readManifest(directory: string): Manifest | null {
  const path = join(directory, MANIFEST)
  return isThere(path) ? parseManifest(readRegular(path).toString(), path) : null
}

/** Deletes the files of exports that none of the manifests names. */
function removeLeftovers(directory: string, ...manifests: readonly (Manifest | null)[]): void {
  const left = manifests.reduce<readonly string[]>((names, manifest) => leftoversIn(names, manifest), readdirSync(directory))
  for (const name of left) rmSync(join(directory, name), { force: true })
}

function beginFile(directory: string, format: Format, header: string): ExportWriter {
  const part = join(directory, PART)
  const file = openSync(part, 'w', FILE_MODE)
  const hash = createHash('sha256')
  let [waiting, bytes, rows, first, last] = [header, 0, 0, 0, 0]
  let isOpen = true

  function flush(): void {
    const chunk = Buffer.from(waiting)
    onFile(part, () => writeAll(file, chunk))
    hash.update(chunk)
    bytes += chunk.byteLength
    waiting = ''
  }

  function discard(): void {
    if (isOpen) closeSync(file)
    isOpen = false
    rmSync(part, { force: true })
  }

  return {
    rows: () => rows,
    add(lines, count, sequence) {
      if (rows === 0) first = sequence
      last = sequence
      rows += count
      waiting += lines
      if (waiting.length >= CHUNK_BYTES) flush()
    },
    finish(knownTo) {
      if (rows === 0) {
        discard()
        return null
      }
      flush()
      onFile(part, () => fsyncSync(file))
      closeSync(file)
      isOpen = false
      const sha256 = hash.digest('hex')
      const name = nameOf({ firstSequence: first, lastSequence: last, sha256, format })
      renameSync(part, join(directory, name))
      syncFolder(directory)
      return { name, format, schema: SCHEMA, firstSequence: first, lastSequence: last, knownTo, rows, bytes, sha256 }
    },
    discard,
  }
}

/** Reads the first line of a file of CSV. A file of an older version has fewer columns. */
function headerOf(path: string, format: Format): string {
  if (ENCODINGS[format].header === '') return ''
  const [line = ''] = linesOf(path, () => undefined)
  return `${line}\n`
}

function* recordsOf(path: string, { format, rows, sha256 }: ExportedFile): ReturnType<ExportFolder['records']> {
  const { header, goesOn } = ENCODINGS[format]
  const hash = createHash('sha256')
  let [count, open, isHeader] = [0, '', header !== '']
  for (const line of linesOf(path, (chunk) => hash.update(chunk))) {
    const record = open + line
    open = goesOn(record) ? `${record}\n` : ''
    if (open !== '') continue
    if (isHeader) {
      isHeader = false
      continue
    }
    const head = headOf(record, format)
    if (head === null) throw new Error(`${path} has a row that no export has written: bring back a copy, or export into a new folder`)
    count += 1
    yield { record, head }
  }
  if (hash.digest('hex') !== sha256 || count !== rows)
    throw new Error(`${path} is not as it was written (its SHA-256 differs): bring back a copy, or export into a new folder`)
}

function* linesOf(path: string, onChunk: (chunk: Uint8Array) => void): Generator<string> {
  const file = openRegular(path)
  try {
    const decoder = new StringDecoder('utf8')
    const chunk = Buffer.alloc(CHUNK_BYTES)
    let rest = ''
    for (;;) {
      const read = onFile(path, () => readSync(file, chunk))
      if (read === 0) break
      onChunk(chunk.subarray(0, read))
      const lines = (rest + decoder.write(chunk.subarray(0, read))).split('\n')
      rest = lines.pop() ?? ''
      yield* lines
    }
    if (rest !== '') yield rest
  } finally {
    closeSync(file)
  }
}
