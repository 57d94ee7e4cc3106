import { z } from 'zod'

const leftSchema = z.object({
  /** The path of the file, or the name of the database. */
  name: z.string(),
  /** When the relay moved away from it, epoch milliseconds. */
  atMs: z.number(),
})

/** A store that the relay has moved away from. It keeps its data until somebody deletes it. */
export type LeftStore = Readonly<z.infer<typeof leftSchema>>

/** At most this many stores are remembered. The relay forgets the stores that it left first. */
const REMEMBERED_MAX = 100

/** Parses the stored list of left stores. A text that cannot be parsed counts as an empty list. */
export function parseLeftStores(text: string): readonly LeftStore[] {
  try {
    return z.array(leftSchema).safeParse(JSON.parse(text)).data ?? []
  } catch {
    return []
  }
}

/** Adds a store to the list of left stores. `current`: the name of the store in use. It is removed from the list. */
export function addLeftStore(known: readonly LeftStore[], left: LeftStore, current: string): readonly LeftStore[] {
  return [...known, left]
    .filter(({ name }, at, all) => name !== current && all.findLastIndex((one) => one.name === name) === at)
    .slice(-REMEMBERED_MAX)
}
