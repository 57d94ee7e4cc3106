/**
 * Measures for how long endpoints are seen to fail: by a clock that only goes forward, and within one run of the relay. What passes while nobody
 * looks is not seen.
 */
export interface FailureWatch {
  look(): FailureLook
}

/** One look at all endpoints. */
export interface FailureLook {
  /** An endpoint failed; how long after it was last seen to, in milliseconds. 0: it was not before, or has been in this look already. */
  failedAfterMs(endpointId: string): number
  /** What was seen is written down, and counts from now on. */
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
