/*
 * The schedule must not poll a parcel twice at once. Claiming a poll leases its parcel: until the lease ends, the schedule does not claim it
 * again. Only an operator's order may. The lease ends when the result of the poll is recorded, or when the poll has failed. If the result is
 * lost, the lease expires.
 *
 * A poll waits for the carrier's budget, so it may take longer than its lease. With each claim the poller therefore names the parcels that it
 * is still polling, and the writer skips them: it leases them again for that claim only (until the claim's time plus 1 ms). A longer lease
 * might never be ended: the result of a poll is saved, and its lease ended, shortly before the parcel leaves this list.
 *
 * A replica that loses its role as poller aborts its scheduled polls and saves no result of them. If it becomes the poller again, its first
 * claim names their parcels as if they were still being polled, and their leases end with that claim.
 */

/** The parcels that are being polled, on schedule or by order. */
export interface PollsUnderWay {
  /** Lists the parcel as being polled while `work` lasts. */
  during<Value>(parcelId: number, work: () => Promise<Value>): Promise<Value>
  list(): readonly number[]
}

/** Create it once: scheduled polls and operators' orders share it. */
export function createPollsUnderWay(): PollsUnderWay {
  const underWay = new Map<number, number>()
  return {
    async during(parcelId, work) {
      underWay.set(parcelId, (underWay.get(parcelId) ?? 0) + 1)
      try {
        return await work()
      } finally {
        const others = (underWay.get(parcelId) ?? 1) - 1
        if (others > 0) underWay.set(parcelId, others)
        else underWay.delete(parcelId)
      }
    },
    list: () => [...underWay.keys()],
  }
}
