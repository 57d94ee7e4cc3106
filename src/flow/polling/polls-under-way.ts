/*
 * The schedule must not poll a parcel twice at once. Claiming a poll leases its parcel: until the lease ends, the schedule does not claim it
 * again; only an operator's order may. The result of the poll ends the lease, whether it is recorded or failed. If the result gets lost, the
 * lease lapses.
 *
 * A poll may take longer than its lease, because it waits for the carrier's budget. So the poller passes the parcels that are still being
 * polled with each claim, and the writer skips them. It leases them again for that claim only (until its time plus 1 ms): the result of a
 * poll is saved before its work here ends, so a poll may have ended its lease already, and nothing would end a longer one.
 *
 * A replica that loses its own lease aborts its scheduled polls and saves no result of them. If it becomes the poller again, it passes their
 * parcels with its first claim as if they were still being polled, and their leases end with that claim.
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
