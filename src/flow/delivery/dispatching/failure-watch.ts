/**
 * Measures for how long endpoints fail, by a monotonic clock and within one run of the relay. Time in which nobody looks does not count.
 */
export interface FailureWatch {
  look(): FailureLook
}

/** One look at the endpoints. */
export interface FailureLook {
  /**
   * Notes that an endpoint failed. Returns the time since it was last seen to fail, in milliseconds; 0: it did not fail before, or was
   * noted in this look already.
   */
  failedAfterMs(endpointId: string): number
  /** The results of this look were committed and count from now on. */
  keep(): void
}

export function createFailureWatch(monotonic: () => number): FailureWatch {
  const lastMs = new Map<string, number>()
  return {
    look() {
      const nowMs = monotonic()
      const seen = new Set<string>()
      return {
        failedAfterMs(endpointId) {
          if (seen.has(endpointId)) return 0
          seen.add(endpointId)
          return nowMs - (lastMs.get(endpointId) ?? nowMs)
        },
        keep() {
          for (const endpointId of seen) lastMs.set(endpointId, nowMs)
        },
      }
    },
  }
}
