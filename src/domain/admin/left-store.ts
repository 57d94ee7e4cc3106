import { z } from 'zod'

const leftSchema = z.object({
  /** The path of a file, or the name of a database. */
  name: z.string(),
  /** When it was left, epoch milliseconds. */
  atMs: z.number(),
})

/** A store that a move has left behind. It keeps the data that it had then, until somebody deletes it. */
export type LeftStore = Readonly<z.infer<typeof leftSchema>>

/** The most stores that are remembered, the newest ones. */
const REMEMBERED_MAX = 100

/** Parses the stores that a store remembers. An unreadable text counts as none. */
export function parseLeftStores(text: string): readonly LeftStore[] {
  try {
    return z.array(leftSchema).safeParse(JSON.parse(text)).data ?? []
  } catch {
    return []
  }
}

/** Adds a store to those that a store remembers. `current`: the name of the store in use, which is not left behind any more. */
export function addLeftStore(known: readonly LeftStore[], left: LeftStore, current: string): readonly LeftStore[] {
  return [...known, left]
    .filter(({ name }, at, all) => name !== current && all.findLastIndex((one) => one.name === name) === at)
    .slice(-REMEMBERED_MAX)
}
