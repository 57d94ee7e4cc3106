import { createHash } from 'node:crypto'
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { lockStore, StoreInUse } from '../../core/store/sqlite/lock.ts'
import { FILE_MODE, FOLDER_MODE, syncFolder, writeAll, writeWhole } from '../../core/store/sqlite/whole-file.ts'
import { isThere, onFile, readRegular } from '../../regular-file.ts'
import type { FileFormat } from './file-format.ts'
import { type FlatRow, type Format, type RowHead, SCHEMA } from './flat-rows.rules.ts'
import { type ExportedFile, leftoversIn, type Manifest, nameOf, parseManifest } from './manifest.rules.ts'
import { chunksOf, textFile } from './text-file.ts'

const MANIFEST = 'manifest.json'
const PART = 'next.part'

export interface ExportWriter<Row = FlatRow> {
  readonly rows: () => number
  /** Adds the rows of an event, in the order of their sequences. */
  add(rows: readonly Row[], sequence: number): void
  /** Puts the file in its place. Null: it has no rows, and is gone. `knownTo`: the last sequence that the relay had given when the rows were read. */
  finish(knownTo: number): ExportedFile | null
  discard(): void
}

/** A folder with exported files that only this process may change, until it is closed. */
export type ExportFolder = ReturnType<typeof openExportFolder>

/**
 * Opens a folder for an export. Deletes what an export that was killed has left. Throws if another export is at
 * work there, if the folder cannot be written to, or if files are missing that the manifest names. `isMade`: whether a missing folder is made.
 */
export function openExportFolder(directory: string, isMade: boolean) {
  // The folders above it must be there: making them too never ends where the system denies that they can be missing, as in /proc.
  if (isMade && !isThere(directory)) mkdirSync(directory, { mode: FOLDER_MODE })
  const lock = lockFolder(directory)
  const path = (name: string) => join(directory, name)
  try {
    let manifest = readManifest(directory)
    refuseLosses(directory, manifest)
    removeLeftovers(directory, manifest)
    return {
      /** Null: nothing was exported to this folder yet. */
      manifest: () => manifest,
      /** Begins a file. Only one can be written at a time. It counts once a saved manifest names it. */
      async begin(format: Format): Promise<ExportWriter> {
        const rows = await formatOf(format)
        const { add, ...writer } = await beginFile(directory, format, rows, null)
        return { ...writer, add: (event, sequence) => add(event.map(rows.encode), sequence) }
      },
      /** Writes a file anew, with its columns and the rows to keep. Null: there are none. Throws as `heads` does. */
      copy: async (file: ExportedFile, keeps: (head: RowHead) => boolean) =>
        await copyRows(directory, file, await formatOf(file.format), keeps),
      /** Replaces the manifest, then deletes the files that it no longer names. */
      save(next: Manifest) {
        writeWhole(path(MANIFEST), `${JSON.stringify(next, null, 2)}\n`)
        manifest = next
        removeLeftovers(directory, next)
      },
      /** Reads the heads of the rows of a file. Throws if the file is not the one that the manifest describes. */
      async *heads(file: ExportedFile) {
        refuseChanged(path(file.name), file)
        for await (const { head } of (await formatOf(file.format)).read(path(file.name))) yield head
      },
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

/** Loads what writes and reads Parquet only if it is needed. */
async function formatOf(format: Format): Promise<FileFormat<unknown>> {
  return format === 'parquet' ? (await import('./parquet-file.ts')).parquetFile : textFile(format)
}

async function beginFile<Row>(directory: string, format: Format, rowsOf: FileFormat<Row>, like: string | null): Promise<ExportWriter<Row>> {
  const part = join(directory, PART)
  const hash = createHash('sha256')
  let [bytes, rows, first, last] = [0, 0, 0, 0]
  const writer = await rowsOf.begin((chunk) => {
    onFile(part, () => writeAll(file, chunk))
    hash.update(chunk)
    bytes += chunk.byteLength
  }, like)
  const file = openSync(part, 'w', FILE_MODE)
  let isOpen = true

  function discard(): void {
    if (isOpen) closeSync(file)
    isOpen = false
    rmSync(part, { force: true })
  }

  return {
    rows: () => rows,
    add(more, sequence) {
      if (rows === 0) first = sequence
      last = sequence
      rows += more.length
      for (const row of more) writer.add(row)
    },
    finish(knownTo) {
      if (rows === 0) {
        discard()
        return null
      }
      writer.end()
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

async function copyRows<Row>(directory: string, file: ExportedFile, rowsOf: FileFormat<Row>, keeps: (head: RowHead) => boolean) {
  const path = join(directory, file.name)
  refuseChanged(path, file)
  const writer = await beginFile(directory, file.format, rowsOf, path)
  try {
    for await (const { row, head } of rowsOf.read(path)) if (keeps(head)) writer.add([row], head.sequence)
    return writer.finish(file.knownTo)
  } catch (error) {
    writer.discard()
    throw error
  }
}

function refuseChanged(path: string, { sha256 }: ExportedFile): void {
  const hash = createHash('sha256')
  for (const chunk of chunksOf(path)) hash.update(chunk)
  if (hash.digest('hex') !== sha256)
    throw new Error(`${path} is not as it was written (its SHA-256 differs): bring back a copy, or export into a new folder`)
}
