import type { ExportFolder } from './export-folder.ts'
import { createErasedParcels, type RowHead } from './flat-rows.rules.ts'
import type { ExportedFile, Manifest } from './manifest.rules.ts'

export interface ErasureReport {
  /** How many `erased` rows the export has. */
  readonly erasedParcels: number
  readonly removedRows: number
  /** How many files had such rows, and were written anew or deleted. */
  readonly changedFiles: number
}

/** Removes the rows of erased parcels. Throws if a file cannot be read whole, and then changes nothing. */
export async function applyErasures(folder: ExportFolder, manifest: Manifest): Promise<ErasureReport> {
  const erased = await erasedIn(folder, manifest)
  const kept = await keepRows(folder, manifest, (head) => !erased.removes(head))
  if (kept.changedFiles > 0) folder.save({ ...manifest, files: kept.files })
  return { erasedParcels: erased.count(), removedRows: kept.removedRows, changedFiles: kept.changedFiles }
}

/**
 * Removes the files that may show what a restored relay does not know, so that their events are exported again. A row of an earlier event may show a later
 * join. Erasures among them are applied, because a relay that repeats them after the restore may not know any more what was joined.
 */
export async function dropRewound(folder: ExportFolder, manifest: Manifest, last: number) {
  const erased = await erasedIn(folder, manifest)
  const firstUnknown = manifest.files.findIndex(({ knownTo }) => knownTo > last)
  const known = firstUnknown === -1 ? manifest.files : manifest.files.slice(0, firstUnknown)
  const { files } = await keepRows(folder, { ...manifest, files: known }, (head) => !erased.removes(head))
  const startsAfter = Math.min(manifest.startsAfter, last)
  const rewound = { ...manifest, cursor: known.at(-1)?.lastSequence ?? startsAfter, startsAfter, files }
  folder.save(rewound)
  return { manifest: rewound, rewoundRows: rowsIn(manifest.files) - rowsIn(files) }
}

const rowsIn = (files: readonly ExportedFile[]) => files.reduce((sum, { rows }) => sum + rows, 0)

async function erasedIn(folder: ExportFolder, { files }: Manifest) {
  const erased = createErasedParcels()
  for (const file of files) for await (const head of folder.heads(file)) erased.add(head)
  return erased
}

/** Writes each file anew that has rows to remove. The old files stay until the manifest is saved that no longer names them. */
async function keepRows(folder: ExportFolder, manifest: Manifest, keeps: (head: RowHead) => boolean) {
  const files: ExportedFile[] = []
  let [removedRows, changedFiles] = [0, 0]
  for (const file of manifest.files) {
    const isWhole = await keepsAll(folder, file, keeps)
    const kept = isWhole ? file : await folder.copy(file, keeps)
    if (!isWhole) changedFiles += 1
    removedRows += file.rows - (kept?.rows ?? 0)
    if (kept !== null) files.push(kept)
  }
  return { files, removedRows, changedFiles }
}

async function keepsAll(folder: ExportFolder, file: ExportedFile, keeps: (head: RowHead) => boolean): Promise<boolean> {
  for await (const head of folder.heads(file)) if (!keeps(head)) return false
  return true
}
