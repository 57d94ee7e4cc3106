/*
 * How the schedule polls no parcel twice at once. Claiming a poll leases its parcel: until the lease ends, the schedule does not claim it
 * again; only an operator's order may. The result of the poll ends the lease, whether it is recorded or failed. If the result gets lost, the
 * lease ends when its time is over.
 *
 * A poll may take longer than its lease, because it waits for the carrier's budget. So the poller passes the parcels that are still being
 * polled with each claim, and the writer skips them. It leases them again for that claim only (until its time plus 1 ms): the poll may have
 * ended its lease already, for the result is saved before the work here ends, and nobody would end another.
 *
 * A replica that loses its own lease saves no result of the polls that this ends. Should it become the poller again, it passes their parcels
 * with its first claim like those that are being polled, and their leases end with that claim.
 */

/** The parcels that are being polled, on schedule or by order. */
export interface PollsUnderWay {
  /** Counts the parcel while the work lasts. */
  during<Value>(parcelId: number, work: () => Promise<Value>): Promise<Value>
  list(): readonly number[]
}

/** Created once and shared by all who poll. */
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
