import { z } from 'zod'

/** After a restore, every counter goes on at the next multiple of this, so that no number is given to two things. */
const STEP = 1_000_000_000

/** The number from which a counter goes on: the next multiple of 10^9 above all that were given. */
export function nextMultiple(last: number): number {
  return (Math.floor(last / STEP) + 1) * STEP
}

const recordSchema = z.object({
  /** When the store was restored, epoch milliseconds. */
  atMs: z.number(),
  /** The backup it was restored from. */
  backup: z.string(),
  /** When that was made, epoch milliseconds; null: it is not known. */
  madeAtMs: z.number().nullable(),
  /** The last sequence of the backup. */
  from: z.number(),
  /** The sequence from which the feed went on. Those in between were given by the store that was replaced, or by none. */
  to: z.number(),
  /** How many deliveries with such sequences were accepted; null: the store that was replaced could not be read. */
  delivered: z.number().nullable(),
  /** Whether operators were told. */
  isTold: z.boolean(),
})

/** A restore of the store, as the store keeps it. */
export type RestoreRecord = Readonly<z.infer<typeof recordSchema>>

/** More are of no use to anybody. */
const KEPT_MAX = 100

/** A text that cannot be read counts as no restores. */
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

/** The sequences that a restore skipped. */
export type FeedGap = Pick<RestoreRecord, 'from' | 'to'>

/** The gap that holds a sequence; null: none does. A reader who has come to the end of the backup goes on without loss. */
export function gapAt(gaps: readonly FeedGap[], sequence: number): FeedGap | null {
  return gaps.find(({ from, to }) => from < sequence && sequence < to) ?? null
}
