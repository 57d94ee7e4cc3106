import { z } from 'zod'
import { parseStoredAs } from '../json-body.ts'

/** After a restore, every counter continues at the next multiple of this, so that no number is given twice. */
const STEP = 1_000_000_000

/** The API names ids with up to 15 digits. A store must have room for many more ids after a restore. */
const NUMBER_MAX = 100_000_000_000_000

/** @param last the highest number that a counter may have given. Throws if no room would be left above it. */
export function nextMultiple(last: number): number {
  const next = (Math.floor(last / STEP) + 1) * STEP
  if (next <= NUMBER_MAX) return next
  throw new Error(
    `sequences or ids would go on at ${next}, and a relay counts to ${NUMBER_MAX}. Nothing was changed. Ids of deliveries are assumed to be up to ` +
      '--last times the number of endpoints: name with --last the highest sequence that anybody has really seen.',
  )
}

const recordSchema = z.object({
  /** Epoch milliseconds. */
  atMs: z.number(),
  /** The name of the backup from which the store was restored. */
  backup: z.string(),
  /** When the backup was made, epoch milliseconds; null: unknown. */
  madeAtMs: z.number().nullable(),
  /** The last sequence of the backup. */
  from: z.number(),
  /** The sequence at which the feed continued. Only the replaced store can have given sequences between `from` and `to`. */
  to: z.number(),
  /** How many deliveries with sequences between `from` and `to` were accepted by endpoints; null: the replaced store could not be read or was of another relay. */
  delivered: z.number().nullable(),
  /** Whether operators were notified of the restore. */
  isTold: z.boolean(),
})

/** The record of a restore, saved in the restored store. */
export type RestoreRecord = Readonly<z.infer<typeof recordSchema>>

const KEPT_MAX = 100

/** Parses the stored records of restores. A text that cannot be parsed counts as an empty list. */
export function parseRestores(text: string): readonly RestoreRecord[] {
  return parseStoredAs(z.array(recordSchema), text) ?? []
}

export function addRestore(known: readonly RestoreRecord[], restore: RestoreRecord): readonly RestoreRecord[] {
  return [...known, restore].slice(-KEPT_MAX)
}

/** The sequences that a restore has skipped, those between `from` and `to`. */
export type FeedGap = Pick<RestoreRecord, 'from' | 'to'>

/** Finds the gap that contains a sequence; null: no gap contains it. A reader who has read up to `from`, the end of the backup, has lost nothing. */
export function gapAt(gaps: readonly FeedGap[], sequence: number): FeedGap | null {
  return gaps.find(({ from, to }) => from < sequence && sequence < to) ?? null
}
