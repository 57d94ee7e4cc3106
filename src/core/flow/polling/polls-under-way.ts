/*
 * The schedule must not make two polls of a parcel at once. So a claim of a poll leases the parcel. Until the lease ends, only an operator's
 * order may poll the parcel again. The lease ends when the result of the poll, or its failure, is recorded. If the result is lost, the lease
 * expires.
 *
 * A poll waits for the carrier's budget, so it may take longer than its lease. So the poller names, with each claim, the parcels that it is
 * still polling. The writer leases them again for 1 ms, which keeps them out of that claim only. The result of such a poll may have been saved
 * just before the claim. Nothing would then end a longer lease.
 *
 * A replica that loses its role as poller aborts its scheduled polls and does not save their results. If it becomes the poller again, its
 * first claim also names the parcels of the aborted polls, so that their old leases end with that claim.
 */

/** The parcels that are being polled, on schedule or by order. */
export interface PollsUnderWay {
  /** Lists the parcel as being polled until `work` has ended. */
  during<Value>(parcelId: number, work: () => Promise<Value>): Promise<Value>
  list(): readonly number[]
}

/** Create it only once, because scheduled polls and operators' orders share it. */
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
