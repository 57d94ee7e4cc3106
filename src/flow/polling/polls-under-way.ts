/** The parcels that are being polled, on schedule or by order. */
export interface PollsUnderWay {
  /** Counts the parcel while the work lasts. */
  during<Value>(parcelId: number, work: () => Promise<Value>): Promise<Value>
  list(): readonly number[]
}

/** Created once and shared by all who poll: a lease limits how long a poll may take, and this shows that it still runs. */
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
