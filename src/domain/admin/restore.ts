import { z } from 'zod'

/** After a restore, every counter continues at the next multiple of this, so that no number is given twice. */
const STEP = 1_000_000_000

/** The number at which a counter continues: the next multiple of 10^9 above all numbers that were given. */
export function nextMultiple(last: number): number {
  return (Math.floor(last / STEP) + 1) * STEP
}

const recordSchema = z.object({
  /** When the store was restored, epoch milliseconds. */
  atMs: z.number(),
  /** The backup it was restored from. */
  backup: z.string(),
  /** When the backup was made, epoch milliseconds; null: unknown. */
  madeAtMs: z.number().nullable(),
  /** The last sequence of the backup. */
  from: z.number(),
  /** The sequence at which the feed continued. Sequences between `from` and `to` belong to the replaced store, or were never given. */
  to: z.number(),
  /** How many deliveries with sequences between `from` and `to` were accepted; null: the replaced store could not be read. */
  delivered: z.number().nullable(),
  /** Whether operators were notified. */
  isTold: z.boolean(),
})

/** A restore of the store, as the store keeps it. */
export type RestoreRecord = Readonly<z.infer<typeof recordSchema>>

/** This many restores are kept, the newest ones. */
const KEPT_MAX = 100

/** Parses the stored restores. If the text cannot be read, there are none. */
export function parseRestores(text: string): readonly RestoreRecord[] {
  try {
    return z.array(recordSchema).safeParse(JSON.parse(text)).data ?? []
  } catch {
    return []
  }
}

export function addRestore(known: readonly RestoreRecord[], restore: RestoreRecord): readonly RestoreRecord[] {
  return [...known, restore].slice(-KEPT_MAX)
}

/** The sequences that a restore has skipped. */
export type FeedGap = Pick<RestoreRecord, 'from' | 'to'>

/** The gap to which a sequence belongs; null: none. A reader at `from`, the end of the backup, is in no gap and loses nothing. */
export function gapAt(gaps: readonly FeedGap[], sequence: number): FeedGap | null {
  return gaps.find(({ from, to }) => from < sequence && sequence < to) ?? null
}
