import { listOf, memberOf, textOf } from '../asking/ask-relay.ts'

export interface FollowedDeliveries {
  /** The deliveries of a list that are new or have changed since the list before, the oldest first. */
  changedIn(list: unknown): readonly unknown[]
}

/** How many deliveries are remembered: more than a list has, because newer ones push a delivery out of the list. */
const REMEMBERED_MAX = 5000

/** Compares lists of deliveries, one after the other. From the first list it returns at most `firstMax`. */
export function createFollowedDeliveries({ firstMax }: { readonly firstMax: number }): FollowedDeliveries {
  const seen = new Map<string, string>()
  let isFirst = true
  return {
    changedIn(list) {
      const deliveries = listOf(list, 'deliveries').toReversed()
      const changed = deliveries.filter((delivery) => {
        const id = textOf(delivery, 'id') ?? ''
        const standing = `${textOf(delivery, 'state') ?? ''} ${Number(memberOf(delivery, 'attemptCount'))}`
        const before = seen.get(id)
        seen.delete(id)
        seen.set(id, standing)
        return before !== standing
      })
      for (const id of seen.keys()) {
        if (seen.size <= REMEMBERED_MAX) break
        seen.delete(id)
      }
      const shown = isFirst ? changed.slice(Math.max(0, changed.length - firstMax)) : changed
      isFirst = false
      return shown
    },
  }
}
