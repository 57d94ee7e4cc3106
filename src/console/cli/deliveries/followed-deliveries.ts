/** What changed in a list of deliveries since the previous list. */
export interface Look<Row> {
  /** The deliveries that are new or have changed, the oldest first. */
  readonly changed: readonly Row[]
  /** Whether the relay may have new deliveries that the list lacks, because every delivery in the list is new and the list is not complete. */
  readonly mayLackSome: boolean
}

export interface FollowedDeliveries {
  look<Row extends Standing>(list: { readonly deliveries: readonly Row[]; readonly next: string | null }): Look<Row>
}

interface Standing {
  readonly id: string
  readonly state: string
  readonly attemptCount: number
}

/** How many deliveries are remembered. This is more than a list has, because a delivery that newer deliveries pushed out may return to the list. */
const REMEMBERED_MAX = 5000

/** Compares each list of deliveries with the lists before. For the first list, returns only the newest `firstMax` deliveries as changed. */
export function createFollowedDeliveries({ firstMax }: { readonly firstMax: number }): FollowedDeliveries {
  const seen = new Map<string, string>()
  let isFirst = true
  return {
    look({ deliveries, next }) {
      let known = 0
      const changed = deliveries.toReversed().filter(({ id, state, attemptCount }) => {
        const standing = `${state} ${attemptCount}`
        const before = seen.get(id)
        if (before !== undefined) known += 1
        seen.delete(id)
        seen.set(id, standing)
        return before !== standing
      })
      for (const id of seen.keys()) {
        if (seen.size <= REMEMBERED_MAX) break
        seen.delete(id)
      }
      const shown = isFirst ? changed.slice(Math.max(0, changed.length - firstMax)) : changed
      const mayLackSome = !isFirst && known === 0 && next !== null
      isFirst = false
      return { changed: shown, mayLackSome }
    },
  }
}
