import { describeProblem, type RelayAnswer } from '../../console/cli/asking/ask-relay.ts'
import type { FeedAnswer } from '../../core/http/delivery/events.routes.ts'
import type { ExportFolder, ExportWriter } from './export-folder.ts'
import { COLUMNS, type FeedEvent, type Format, flatRows } from './flat-rows.rules.ts'
import { type Manifest, newManifest } from './manifest.rules.ts'
import { dropRewound } from './remove-rows.ts'

/** Reads a page of the feed. */
export type ReadFeed = (after: number, limit: number) => Promise<RelayAnswer<FeedAnswer>>

export interface ExportOptions {
  /** Null: that of the folder, or NDJSON in a new one. */
  readonly format: Format | null
  /** A file ends with the event that brings it to this many rows. */
  readonly rowsMax: number
  /** The last sequence to export; null: the last that the relay has given when the export begins. */
  readonly until: number | null
  /** Whether to remove the rows that a restored relay does not have. */
  readonly afterRestore: boolean
  readonly progress: (done: number, total: number) => void
}

export interface ExportReport {
  readonly format: Format
  readonly relay: string
  /** The sequences after which the export began, and after which the next one goes on. */
  readonly after: number
  readonly cursor: number
  readonly rows: number
  /** The new files. */
  readonly files: readonly string[]
  /** Rows that a restored relay does not have, and that were removed. */
  readonly rewoundRows: number
}

const PAGE = 500
const BEYOND_THE_END = 999_999_999_999_999

/** Writes what the feed has gained since the last export to new files of a folder. Each file counts with the manifest that is saved after it. */
export async function exportFeed(folder: ExportFolder, read: ReadFeed, options: ExportOptions): Promise<ExportReport> {
  const { manifest, rewoundRows } = await begin(folder, read, options)
  const { cursor: after, format, relay } = manifest
  const until = Math.min(options.until ?? Infinity, await lastSequence(read))
  const files = createFiles(folder, manifest, { rowsMax: options.rowsMax, knownTo: () => lastSequence(read) })
  try {
    let position = after
    let ahead = position < until ? begun(read(position, PAGE)) : null
    while (ahead !== null) {
      const answer: Awaited<ReturnType<ReadFeed>> = await ahead
      if (!answer.ok) throw new Error(describeProblem(answer))
      const { events, next } = answer.body
      // While this page is written, the relay makes the next one.
      ahead = events.length > 0 && next < until ? begun(read(next, PAGE)) : null
      for (const event of events) if (event.sequence <= until && (await files.add(event))) await files.end()
      position = next
      options.progress(Math.min(position, until) - after, until - after)
    }
    await files.end()
  } catch (error) {
    files.discard()
    throw error
  }
  const { cursor, files: all } = folder.manifest() ?? manifest
  const made = all.slice(manifest.files.length)
  return {
    format,
    relay,
    after,
    cursor,
    rows: made.reduce((sum, { rows }) => sum + rows, 0),
    files: made.map(({ name }) => name),
    rewoundRows,
  }
}

/** Lets a promise wait that may reject before it is awaited. */
function begun<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

interface FileOptions {
  readonly rowsMax: number
  /** Asks for the last sequence that the relay has given. */
  readonly knownTo: () => Promise<number>
}

/** Writes events to files, one after another, and saves the manifest after each. */
function createFiles(folder: ExportFolder, before: Manifest, { rowsMax, knownTo }: FileOptions) {
  let manifest = before
  let writer: ExportWriter | null = null
  let cursor = before.cursor

  async function end(): Promise<void> {
    if (writer === null) return
    const file = writer.finish(Math.max(cursor, await knownTo()))
    writer = null
    if (file === null) return
    // A folder that an older version has begun gets the columns that have come since.
    manifest = { ...manifest, cursor, columns: COLUMNS, files: [...manifest.files, file] }
    folder.save(manifest)
  }

  return {
    /** Returns whether the file is full, so that it has to end. */
    async add(event: FeedEvent): Promise<boolean> {
      writer ??= await folder.begin(before.format)
      writer.add(flatRows(event), event.sequence)
      cursor = event.sequence
      return writer.rows() >= rowsMax
    },
    end,
    discard: () => writer?.discard(),
  }
}

/** Returns the manifest to go on with. Throws with a sentence for the user if the folder and the relay do not fit. */
async function begin(
  folder: ExportFolder,
  read: ReadFeed,
  { format, afterRestore }: ExportOptions,
): Promise<{ readonly manifest: Manifest; readonly rewoundRows: number }> {
  const known = folder.manifest()
  if (known !== null && format !== null && format !== known.format)
    throw new Error(`the folder holds ${known.format}, not ${format}: leave --format out, or export into a new folder`)
  const seen = Math.max(0, ...(known?.files ?? []).map(({ knownTo }) => knownTo))
  const first = await firstPage(read, known?.cursor ?? 0, seen)
  const relay = first.ok ? first.body.relay : await relayOf(read)
  if (known !== null && known.relay !== relay)
    throw new Error(`the folder holds an export of the relay ${known.relay}, and the one asked is ${relay}: export into a new folder`)
  if (first.ok && known !== null) return { manifest: known, rewoundRows: 0 }
  const { oldestSequence: oldest, lastSequence: last } = first.ok ? {} : first.body
  if (known === null && (first.ok || oldest !== undefined)) {
    const manifest = newManifest(relay, format ?? 'ndjson', Math.max(0, (oldest ?? 1) - 1))
    folder.save(manifest)
    return { manifest, rewoundRows: 0 }
  }
  if (known === null || first.ok) throw new Error(describeProblem(first))
  if (oldest !== undefined)
    throw new Error(
      `the relay no longer has the events from sequence ${known.cursor + 1} to ${oldest - 1} (retention.feed), so this export would have a hole. ` +
        'Export into a new folder: it begins with the oldest event that there is',
    )
  if (last === undefined) throw new Error(describeProblem(first))
  if (!afterRestore)
    throw new Error(
      `the relay was restored from a backup: it has no events after sequence ${last}, and this export goes on to ${Math.max(seen, known.cursor)} (feed_rewound). ` +
        'Give the same command with --after-restore: it removes the files that were exported since the backup and goes on from there. ' +
        'What was loaded from them elsewhere must go too (docs/insight.md)',
    )
  return await dropRewound(folder, known, last)
}

/** Reads on after the cursor, and looks whether the relay still has all that it had when the files were written. */
async function firstPage(read: ReadFeed, cursor: number, seen: number): ReturnType<ReadFeed> {
  const page = await read(cursor, 1)
  return page.ok && seen > cursor ? await read(seen, 1) : page
}

/** Every page names the relay. The last one that there is can be read whatever the reader has missed. */
async function relayOf(read: ReadFeed): Promise<string> {
  const answer = await read(await lastSequence(read), 1)
  if (!answer.ok) throw new Error(describeProblem(answer))
  return answer.body.relay
}

/** The answer to a request beyond the end of the feed has the last sequence. */
async function lastSequence(read: ReadFeed): Promise<number> {
  const answer = await read(BEYOND_THE_END, 1)
  if (answer.ok || answer.body.lastSequence === undefined) throw new Error(describeProblem(answer))
  return answer.body.lastSequence
}
