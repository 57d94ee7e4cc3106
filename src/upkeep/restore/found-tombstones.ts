import { renameSync } from 'node:fs'
import { systemCode } from '../../core/domain/errors.ts'
import { type KeptTombstones, unitedTombstones } from '../../core/domain/history/erased.ts'
import { readGivenTombstones, readTombstoneFile, tombstoneFileOf, writeTombstoneFile } from '../../core/store/sqlite/tombstone-file.ts'
import { isThere } from '../../regular-file.ts'
import { erasuresUnknown, type Lacks, tombstonesOfOther } from './restore-lacks.ts'

/** The tombstones of what was erased since a backup. When the relay starts, it repeats these erasures before it serves. */
export interface FoundTombstones {
  /** What the file and the replaced store know together. */
  readonly kept: KeptTombstones
  /** The sealed keys that made the marks of `kept` and of the backup. They may be one key, sealed with several at-rest keys. */
  readonly sealedKeys: readonly string[]
}

export interface TombstoneSources {
  /** The path of the store. */
  readonly path: string
  /** A file that the operator has named; null: the file beside the store is read. */
  readonly given: string | null
  readonly forgetsErasures: boolean
  /** Whether the replaced store is of another relay than the backup. The file beside it is never used. */
  readonly isOther: boolean
  /** The tombstones in the replaced store; null: it is gone, cannot be read, or is of another relay. */
  readonly before: KeptTombstones | null
  readonly backup: KeptTombstones
}

/** Finds what is known of erasures. If nobody can know what was erased, notes that in `lacks`. Throws if the file cannot be read. */
export function findTombstones({ path, given, forgetsErasures, isOther, before, backup }: TombstoneSources, lacks: Lacks): FoundTombstones {
  const place = tombstoneFileOf(path)
  if (isOther && isThere(place) && !forgetsErasures) lacks.note(tombstonesOfOther(place))
  else if (given !== null && isThere(place))
    throw new Error(`${place} is there already, so --tombstones is not needed. If it belongs to another store, move it away.`)
  const file =
    given !== null ? readGivenTombstones(given) : isOther ? null : forgetsErasures ? readIfPossible(place) : readTombstoneFile(place)
  const kept = unitedTombstones(file, before)
  const isKnown = before !== null || (file !== null && file.sealedKey !== null)
  if (!forgetsErasures && (!isKnown || (kept.tombstones.length > 0 && kept.sealedKey === null))) lacks.note(erasuresUnknown(place))
  const sources = [kept, file, before, backup].filter((one) => one !== null && one.tombstones.length > 0)
  return { kept, sealedKeys: [...new Set(sources.flatMap((one) => one?.sealedKey ?? []))] }
}

/** The operator accepts that erased data may come back, so a damaged file is no obstacle. One that cannot be read now may be whole. */
function readIfPossible(place: string): KeptTombstones | null {
  try {
    return readTombstoneFile(place)
  } catch (error) {
    if (systemCode(error) !== null) throw error
    return null
  }
}

/**
 * Writes the tombstones to the file beside the store. `sealedKey`: a sealed key that can be opened; null: there is none, so the tombstones are
 * of no use, and the file is put aside.
 */
export function keepTombstones(path: string, { tombstones }: KeptTombstones, sealedKey: string | null, aside: string): void {
  const place = tombstoneFileOf(path)
  if (sealedKey !== null && tombstones.length > 0) writeTombstoneFile(place, { sealedKey, tombstones })
  else if (isThere(place)) renameSync(place, tombstoneFileOf(aside))
}
